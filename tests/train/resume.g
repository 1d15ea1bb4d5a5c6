# All that a run carries from step to step: two moments, running statistics, dropout, a schedule.
model resume(batch B = 8)

input x      : f32[B, 10]
input labels : i32[B]

h = relu(batchnorm(dense(x, 12)))
h = dropout(h, 0.3)
logits = dense(h, 4)

output probs = softmax(logits)
train cross_entropy(logits, labels) using adamw(lr = 0.01) {
  clip = 1.0
  schedule = cosine(steps = 12, warmup = 4)
}
