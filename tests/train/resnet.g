# A small residual network: a stem, two stages, batch normalisation all through.
model resnet(batch B = 4)

input images : f32[B, 3, 8, 8]
input labels : i32[B]

block conv(x, channels, kernel = 3, stride = 1) {
  x = conv2d(x, channels, kernel = kernel, stride = stride, pad = (kernel - 1)/2, bias = false)
  return batchnorm(x)
}

block basic(x, channels, stride) {
  h = relu(conv(x, channels, stride = stride))
  return conv(h, channels)
}

stem = relu(conv(images, 4))
h = relu(basic(stem, 4, 1) + stem)
h = relu(basic(h, 6, 2) + conv(h, 6, kernel = 1, stride = 2))
logits = dense(global_avgpool(h), 5)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.05, momentum = 0.9, weight_decay = 1e-3)
