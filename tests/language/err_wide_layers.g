# Layers that are none, a precision that they cannot have, a place where it cannot stand.
model m(batch B = 4)

input x : f32[B, 8]

block one(x) {
  precision "dense.*" = f32
  return dense(x, 3)
}
precision "head.*" = bf16
h = one(x)
output h
