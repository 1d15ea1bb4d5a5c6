model metrics(batch B = 4)
input x : f32[B, 3]
input y : i32[B]
logits = dense(x, 5)
output logits
metric logits = mean(logits)
metric x = mean(logits)
metric rows = mean(logits, axis = 1)
metric three = 3
block part(h) {
  metric inner = mean(h)
  return h
}
train cross_entropy(logits, y) using sgd(lr = 0.1)
