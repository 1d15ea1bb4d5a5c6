# Tables, a loop, a call, settings of a group, micro-batches: what gplan writes round the kernels.
model written(batch B = 4, C = 6)

input x : f32[B, C]
input labels : i32[B]

param a : [C] = normal(0.5)
param b : [C] = zeros
param fixed : [2, C] = [[1, 2, 3, 4, 5, 6], [0.5, 0.25, 0.125, 1e-3, -1, 0]]
h = tanh(x * a + b * fixed[1]) * x[:, 2:3]

output best = argmax(h, axis = 1)
output probs = softmax(h)
train cross_entropy(h, labels) using adamw(lr = 1e-3, weight_decay = 0.1) {
  clip = 1.0
  schedule = cosine(steps = 100, warmup = 10)
  group "b" { weight_decay = 0; lr = 2e-3 }
}
