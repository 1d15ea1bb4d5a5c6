# From an out-of-memory report: wide convolutions on 32 pictures of 128x128.
model oom_c(batch B = 32, S = 128, W = 256)

input images  : f32[B, 3, S, S]
input targets : f32[B, 10]

block pair(x, channels) {
  repeat i in 0..2 { x = relu(conv2d(x, channels, kernel = 3, pad = same)) }
  return x
}

h = maxpool2d(pair(images, W), 2)
h = maxpool2d(pair(h, 2*W), 2)
h = global_avgpool(pair(h, 4*W))

output probs = softmax(dense(h, 10))
train mse(probs, targets) using adam(lr = 1e-3)
