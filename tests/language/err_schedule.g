model train(batch B = 4)
input x : f32[B, 6]
y = dense(x, 3)
train mean(y) using adam() {
  schedule = cosine(warmup = 3)
}
