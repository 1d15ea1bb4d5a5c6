# LeNet-5 on 28x28 digits: 61,706 parameters (LeCun et al., 1998).
model lenet(batch B = 64)

input images : f32[B, 1, 28, 28]
input labels : i32[B]

conv1 = conv2d(images, 6, kernel = 5, pad = 2)
h = avgpool2d(tanh(conv1), 2)
conv2 = conv2d(h, 16, kernel = 5)
h = flatten(avgpool2d(tanh(conv2), 2))

fc1 = dense(h, 120)
fc2 = dense(tanh(fc1), 84)
logits = dense(tanh(fc2), 10)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.05, momentum = 0.9)
