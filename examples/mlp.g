# A multilayer perceptron that reads 28x28 digits.
model mlp(batch B = 64, H = 256)

input images : f32[B, 784]
input labels : i32[B]

fc1 = dense(images, H)
fc2 = dense(relu(fc1), H)
logits = dense(relu(fc2), 10)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.1, momentum = 0.9)
