# One layer, small enough to be done by hand.
model affine(batch B = 3)
input x : f32[B, 4]
param w : [4, 2] = normal(0.5)
param b : [2] = const(0.25)
param unused : [5] = ones
const scale : f32[2] = [2.0, -1.5]
y = relu(x @ w + b) * scale
output y
output twice = y + y
