# Pictures of clothes, in ten classes: 60,000 to learn from and 10,000 to be judged by.
#     gplan run examples/fashion.g --budget 64M -- train --epochs 10 --schedule cosine
# The files are those of Debian's package dataset-fashion-mnist; --data names another folder.
model fashion(batch B = 100)

input images : u8[B, 1, 28, 28]
input labels : u8[B]
data train = idx("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte",
    "/usr/share/datasets/fashion-mnist/train-labels-idx1-ubyte", flip = true) -> images, labels
data eval = idx("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte",
    "/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte") -> images, labels

h = maxpool2d(relu(conv2d(images / 255.0, 16, kernel = 3, pad = same)), 2)
h = maxpool2d(relu(conv2d(h, 32, kernel = 3, pad = same)), 2)
h = relu(dense(flatten(h), 128))
logits = dense(dropout(h, 0.2), 10)

classes = cast(labels, i32)
output probs = softmax(logits)
metric accuracy = mean(argmax(logits, axis = 1) == classes)
train cross_entropy(logits, classes) using adam(lr = 2e-3)
