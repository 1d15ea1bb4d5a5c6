# Data statements: what they fill is declared as the file has it.
model fashion(batch B = 64)
input images : u8[B, 1, 28, 28]
input labels : u8[B]
data train = idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", shift = 2) ->
    images, labels
data eval = idx("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte") -> images, labels
h = relu(dense(reshape(images / 255.0, [B, 784]), 128))
logits = dense(h, 10)
classes = cast(labels, i32)
metric accuracy = mean(argmax(logits, axis = 1) == classes)
output probs = softmax(logits)
train cross_entropy(logits, classes) using adam(lr = 1e-3)
