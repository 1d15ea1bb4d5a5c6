# f16 with its loss scale, state of 8 bits, and parameters with settings of their own.
model narrow(batch B = 16, D = 20, H = 112)

input x : i32[B, D]
input labels : i32[B]

h = relu(dense(cast(x, f32) * 0.125 - 1.0, H))
h = h + relu(dense(h, H, name = "middle"))
h = h + relu(dense(h, H, name = "plain"))
logits = dense(h, 10)
output probs = softmax(logits)
metric accuracy = mean(cast(argmax(logits, axis = 1) == labels, f32))
train cross_entropy(logits, labels) using adamw(lr = 0.01, state = 8bit) {
  precision = f16
  clip = 0.5
  clip_value = 0.1
  group "middle.w" { lr = 1e-3; weight_decay = 0 }
  group "plain.w" { state = f32 }
}
