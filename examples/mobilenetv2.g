# MobileNetV2: 3,504,872 parameters (Sandler et al., 2018).
model mobilenetv2(batch B = 32, S = 224, K = 1000)

input images : f32[B, 3, S, S]
input labels : i32[B]

block conv(x, channels, kernel = 1, stride = 1, groups = 1) {
  x = conv2d(x, channels, kernel = kernel, stride = stride, pad = (kernel - 1)/2,
             groups = groups, bias = false)
  return batchnorm(x)
}
block relu6(x) { return clip(x, 0, 6) }

# A 3x3 convolution of each channel on its own, then a linear mix of the channels.
block separable(x, width, channels, stride) {
  h = relu6(conv(x, width, kernel = 3, stride = stride, groups = width))
  return conv(h, channels)
}
block inverted(x, width, channels, stride = 1) {
  return separable(relu6(conv(x, width)), width, channels, stride)
}
block stage(x, before, channels, depth, stride) {
  x = inverted(x, 6*before, channels, stride)
  repeat i in 1..depth { x = x + inverted(x, 6*channels, channels) }
  return x
}

h = relu6(conv(images, 32, kernel = 3, stride = 2))
h = separable(h, 32, 16, stride = 1)
h = stage(h, 16, 24, 2, stride = 2)
h = stage(h, 24, 32, 3, stride = 2)
h = stage(h, 32, 64, 4, stride = 2)
h = stage(h, 64, 96, 3, stride = 1)
h = stage(h, 96, 160, 3, stride = 2)
h = stage(h, 160, 320, 1, stride = 1)
h = relu6(conv(h, 1280))
logits = dense(dropout(global_avgpool(h), 0.2), K)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.05, momentum = 0.9, weight_decay = 4e-5)
