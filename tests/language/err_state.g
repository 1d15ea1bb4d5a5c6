model state(batch B = 4)
input x : f32[B, 6]
y = dense(x, 3)
train mean(y) using sgd(lr = 0.1, momentum = 0.9, state = 9) {
  group "*.b" { state = bf16 }
}
