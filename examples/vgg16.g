# VGG-16: 138,357,544 parameters (Simonyan and Zisserman, 2014).
model vgg16(batch B = 32, S = 224, W = 64, F = 4096, K = 1000)

input images : f32[B, 3, S, S]
input labels : i32[B]

block stage(x, channels, convs) {
  repeat i in 0..convs { x = relu(conv2d(x, channels, kernel = 3, pad = same)) }
  return maxpool2d(x, 2)
}

h = stage(images, W, 2)
h = stage(h, 2*W, 2)
h = stage(h, 4*W, 3)
h = stage(h, 8*W, 3)
h = stage(h, 8*W, 3)

fc1 = dense(flatten(h), F)
fc2 = dense(dropout(relu(fc1), 0.5), F)
logits = dense(dropout(relu(fc2), 0.5), K)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.01, momentum = 0.9, weight_decay = 5e-4)
