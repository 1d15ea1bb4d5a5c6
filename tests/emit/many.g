# 10,000 steps: what the compiler of the emitted file has to take.
model many(batch B = 4, L = 2500)
input x : f32[B, 8]
param w : [8, 8] = normal(0.3)
h = x
repeat i in 0..L {
  h = softmax(tanh(h @ w)) + layernorm(h)
}
output h
