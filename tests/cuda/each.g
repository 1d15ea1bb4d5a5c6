# Loops over elements and a softmax: broadcasting, slices, dropout, casts.
model each(batch B = 6, N = 37)

input x : f32[B, N]
input pick : i32[B, N]

param w : [N] = normal(0.5)
param b : [B, 1] = uniform(-1.0, 1.0)
h = tanh(x * w + b)
k = gelu(h[:, 0:30]) * exp(h[:, 7:37] * 0.5) + where(pick[:, 0:30] > 1, h[:, 3:33], 0.25)
output chain = k * 2
output y = softmax(k)
output z = softmax(transpose(sigmoid(h)) - 0.5)
