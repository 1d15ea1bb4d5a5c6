model unclosed(batch B = 4)
input x : f32[B, 6]
block f(a) {
  return dense(a, 3
}
block g(a) {
  return a
output y = g(x)
