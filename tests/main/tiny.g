# Four classes of small images, for tests of the program around a model.
model tiny(batch B = 8)
input x : u8[B, 8, 8]
input y : u8[B]
data train = idx("data/train-x", "data/train-y") -> x, y
data eval = idx("data/eval-x", "data/eval-y") -> x, y
h = relu(dense(reshape(x / 255.0, [B, 64]), 16))
logits = dense(dropout(h, 0.1), 4)
classes = cast(y, i32)
output probs = softmax(logits)
metric accuracy = mean(argmax(logits, axis = 1) == classes)
train cross_entropy(logits, classes) using adam(lr = 2e-3)
