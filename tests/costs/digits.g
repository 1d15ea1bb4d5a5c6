# A small network for digits of 8x8 pixels: two convolutions and a dense layer.
model digits(batch B = 64)

input images : f32[B, 1, 8, 8]
input labels : i32[B]

h = relu(conv2d(images, 16, kernel = 3, pad = same))
h = maxpool2d(h, 2)
h = relu(conv2d(h, 32, kernel = 3, pad = same))
h = maxpool2d(h, 2)
logits = dense(reshape(h, [B, 128]), 10)

output probs = softmax(logits)
train cross_entropy(logits, labels) using adam(lr = 1e-3)
