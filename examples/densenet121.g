# DenseNet-121: 7,978,856 parameters (Huang et al., 2016). Every layer sees all layers before it.
model densenet121(batch B = 32, S = 224, G = 32, K = 1000)

input images : f32[B, 3, S, S]
input labels : i32[B]

block layer(x) {
  h = conv2d(relu(batchnorm(x)), 4*G, kernel = 1, bias = false)
  h = conv2d(relu(batchnorm(h)), G, kernel = 3, pad = 1, bias = false)
  return concat(x, h, axis = 1)
}
block dense_block(x, depth) {
  repeat i in 0..depth { x = layer(x) }
  return x
}
block transition(x, channels) {
  return avgpool2d(conv2d(relu(batchnorm(x)), channels, kernel = 1, bias = false), 2)
}

h = conv2d(images, 2*G, kernel = 7, stride = 2, pad = 3, bias = false)
h = maxpool2d(relu(batchnorm(h)), 3, stride = 2, pad = 1)
h = transition(dense_block(h, 6), 4*G)
h = transition(dense_block(h, 12), 8*G)
h = transition(dense_block(h, 24), 16*G)
h = relu(batchnorm(dense_block(h, 16)))
logits = dense(global_avgpool(h), K)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.1, momentum = 0.9, weight_decay = 1e-4)
