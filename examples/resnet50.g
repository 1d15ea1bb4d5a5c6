# ResNet-50: 25,557,032 parameters (He et al., 2015; the stride stands at the 3x3 convolution).
model resnet50(batch B = 32, S = 224, W = 64, K = 1000)

input images : f32[B, 3, S, S]
input labels : i32[B]

block conv(x, channels, kernel = 1, stride = 1) {
  x = conv2d(x, channels, kernel = kernel, stride = stride, pad = (kernel - 1)/2, bias = false)
  return batchnorm(x)
}

block bottleneck(x, width, stride = 1) {
  h = relu(conv(x, width))
  h = relu(conv(h, width, kernel = 3, stride = stride))
  return conv(h, 4*width)
}

block stage(x, width, depth, stride) {
  shortcut = conv(x, 4*width, stride = stride)
  x = relu(bottleneck(x, width, stride) + shortcut)
  repeat i in 1..depth { x = relu(bottleneck(x, width) + x) }
  return x
}

stem = relu(conv(images, W, kernel = 7, stride = 2))
h = maxpool2d(stem, 3, stride = 2, pad = 1)
h = stage(h, W, 3, stride = 1)
h = stage(h, 2*W, 4, stride = 2)
h = stage(h, 4*W, 6, stride = 2)
h = stage(h, 8*W, 3, stride = 2)
logits = dense(global_avgpool(h), K)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.1, momentum = 0.9, weight_decay = 1e-4)
