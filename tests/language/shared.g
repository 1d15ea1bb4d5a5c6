# A shared block makes its parameters once, wherever it is called from.
model tied(batch B = 2, C = 4)
input x : f32[B, C]
shared block step(x) {
  param g : [C] = ones
  return dense(x, C) * g
}
block twice(x) { return step(step(x)) }
h = step(x)
h = twice(h)
repeat i in 0..2 { h = step(h) }
output h
