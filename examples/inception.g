# GoogLeNet without its auxiliary classifiers: 6,998,552 parameters (Szegedy et al., 2014).
# Each inception joins four branches along the channels.
model inception(batch B = 32, S = 224, K = 1000)

input images : f32[B, 3, S, S]
input labels : i32[B]

block conv(x, channels, kernel = 1) {
  return relu(conv2d(x, channels, kernel = kernel, pad = same))
}
block inception(x, one, before3, three, before5, five, pool) {
  a = conv(x, one)
  b = conv(conv(x, before3), three, kernel = 3)
  c = conv(conv(x, before5), five, kernel = 5)
  d = conv(maxpool2d(x, 3, stride = 1, pad = 1), pool)
  return concat(a, b, c, d, axis = 1)
}
block halve(x) { return maxpool2d(x, 3, stride = 2, pad = 1) }

h = halve(relu(conv2d(images, 64, kernel = 7, stride = 2, pad = 3)))
h = halve(conv(conv(h, 64), 192, kernel = 3))

h = inception(h, 64, 96, 128, 16, 32, 32)
h = inception(h, 128, 128, 192, 32, 96, 64)
h = halve(h)
h = inception(h, 192, 96, 208, 16, 48, 64)
h = inception(h, 160, 112, 224, 24, 64, 64)
h = inception(h, 128, 128, 256, 24, 64, 64)
h = inception(h, 112, 144, 288, 32, 64, 64)
h = inception(h, 256, 160, 320, 32, 128, 128)
h = halve(h)
h = inception(h, 256, 160, 320, 32, 128, 128)
h = inception(h, 384, 192, 384, 48, 128, 128)
logits = dense(dropout(global_avgpool(h), 0.4), K)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.01, momentum = 0.9, weight_decay = 2e-4)
