# Photographs in folders, decoded with memory that is planned for each worker.
model net(batch B = 8)

input x : u8[B, 3, 32, 32]
input y : i32[B]

data train = images("photos", flip = true, crop = 0.5, progressive = 1000000, split = 0.25) -> x, y

h = relu(conv2d(x / 255.0, 8, kernel = 3, stride = 2))
logits = dense(global_avgpool(h), 3)

metric accuracy = mean(argmax(logits, axis = 1) == y)
output probs = softmax(logits)
train cross_entropy(logits, y) using adam(lr = 0.01)
