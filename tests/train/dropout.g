# Its gradients show the masks: sample b has 2^b in every place, and a step of this length leaves
# in w the numbers whose bits are what was kept. One mask has the batch on its second axis, and one
# is of a parameter: all micro-batches share it.
model dropout(batch B = 8, N = 64)

input x : f32[B, N]
input y : f32[B, N]

param w : [N] = zeros
param v : [N] = zeros
param u : [N] = zeros
param ones : [N] = ones

a = dropout(x, 0.25) * w
b = transpose(dropout(transpose(y), 0.5)) * v
c = x * u * dropout(ones, 0.5)

output out = a + b + c
train mean(a + b + c) using sgd(lr = 1.0) { group "ones" { frozen = true } }
