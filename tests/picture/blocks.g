# Blocks, a repeat, a concat and a train statement: something of everything that is drawn.
model blocks(batch B = 4, C = 8)

input x : f32[B, C]
input labels : i32[B]

block pair(x) {
  return gelu(dense(relu(dense(x, 2*C)), C))
}

h = x
repeat i in 0..3 { h = h + pair(h) }
logits = dense(concat(h, x, axis = 1), 3)

output probs = softmax(logits)
train cross_entropy(logits, labels) using adam(lr = 1e-3)
