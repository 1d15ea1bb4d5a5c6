# Small, so that all that is drawn of it can be read: a block that is repeated, tensors that share
# memory, and a training step whose budget makes it compute a value again.
model plan(batch B = 4, C = 6)

input x : f32[B, C]
input labels : i32[B]

block layer(x) {
  param w : [C] = normal(0.5)
  return softmax(tanh(x) * w)
}

h = x
repeat i in 0..2 { h = h + layer(h) }

output probs = softmax(concat(h, x, axis = 1))
train cross_entropy(h, labels) using sgd(lr = 0.1)
