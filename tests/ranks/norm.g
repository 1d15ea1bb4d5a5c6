# Statistics of each micro-batch, which move running ones in rank order.
model norm(batch B = 16, S = 6)

input x : i32[B, 3, S, S]
input labels : i32[B]

h = cast(x, f32) * 0.125 - 1.0
h = relu(batchnorm(conv2d(h, 8, kernel = 3, pad = same), over = micro))
h = relu(batchnorm(conv2d(h, 8, kernel = 3, stride = 2), over = micro, momentum = 0.3))
logits = dense(global_avgpool(h), 10)
output probs = softmax(logits)
metric accuracy = mean(cast(argmax(logits, axis = 1) == labels, f32))
train cross_entropy(logits, labels) using sgd(lr = 0.1, momentum = 0.9)
