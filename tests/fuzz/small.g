# Little to plan: a window of a concat, a view, an update in place.
model small(batch B = 2)

input x : f32[B, 3]
param w : [3, 2]
h = concat([tanh(x), x @ w], axis = 1)
output o = transpose(h)
train mean(square(h)) using sgd(lr = 0.1)
