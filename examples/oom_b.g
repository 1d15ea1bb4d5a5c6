# From an out-of-memory report: 32 grey pictures of 1000x1000, one convolution, and a dense layer on
# all that it left.
model oom_b(batch B = 32, S = 1000, W = 32)

input images  : f32[B, 1, S, S]
input targets : f32[B, 10]

h = relu(conv2d(images, W, kernel = 3))
h = flatten(maxpool2d(h, 2))

output probs = softmax(dense(h, 10))
train mse(probs, targets) using adam(lr = 1e-3)
