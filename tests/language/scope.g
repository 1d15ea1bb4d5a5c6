# A block sees what was defined before it, as it was then; a repeat rebinds names around it.
model scope(batch B = 2, C = 4)
input x : f32[B, C]
h = x * 2
block f(a) { return a + h }        # h = x * 2
h = x * 3
y = f(x)
block g(a, n = C/2, act = tanh) {
  h = gelu(a, form = act)          # its own h
  block k(b) { return b * n }
  return k(h), h
}
p, q = g(x)
r, s = g(x, act = exact, n = 7)
repeat i in 1..3 {
  t = h + i                        # local to the turn
  h = t * i
}
output y
output z = p + q + r + s + h
