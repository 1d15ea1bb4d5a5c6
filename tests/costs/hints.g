# A value that is computed again, one that is kept, a block that is checkpointed, and an output that is
# to be computed again. Without products, whose workspace is the kernels' affair.
model hints(batch B = 16, C = 24)

input x : f32[B, C]
input y : i32[B]

checkpoint block layer(x) {
  param w : [C] = normal(0.5)
  return softmax(tanh(softmax(x * w)) * w)
}

param a : [C] = normal(0.5)
param b : [C] = normal(0.5)
h = softmax(x * a)
k = softmax(tanh(h) * b)
recompute h
keep k
g = layer(layer(k))
p = softmax(g * a)
recompute p
output p
output z = softmax(p * b)
train cross_entropy(p * a, y) using sgd(lr = 0.1)
