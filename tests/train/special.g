# One matrix used three ways, a branch that gradients do not enter, parameters that stay.
model special(batch B = 6)

input x : f32[B, 4]
input y : f32[B, 4]

param w        : [4, 4] = normal(0.5)
frozen param k : [4] = [0.5, -1, 2, 0.25]
param still    : [4] = ones

h = tanh(x @ w) * k
h = h @ transpose(w) + w[1:2, :]
out = h * stop_gradient(h) + h * still

output out
train mse(out, y) using sgd(lr = 0.05) { group "st?ll" { frozen = true } }
