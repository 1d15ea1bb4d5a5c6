model turn(batch B = 4)
input x : f32[B, 6]
h = x
block halve(a) { return a[:, 0:dim(a, 1)/2] }
repeat i in 0..5 {
  h = halve(h)
}
output h
