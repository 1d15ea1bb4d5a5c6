model train(batch B = 4)
input x : f32[B, 6]
y = dense(x, 3)
train mean(y) using adam(lrr = 3, beta1 = 1.5, lr = 1, lr = 2, eps = true) {
  clipp = 3
  accumulate = 0
  accumulate = some
  schedule = cosinus(steps = 3)
  z = relu(x)
  keep y
  group "*.b" { momentum = 0.9 }
  group "*.w" { }
}
