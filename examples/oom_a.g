# From an out-of-memory report: 256 pictures of 1024x1024, one convolution, and a dense layer on
# all that it left.
model oom_a(batch B = 256, S = 1024, W = 32)

input images  : f32[B, 3, S, S]
input targets : f32[B, 10]

h = relu(conv2d(images, W, kernel = 3))
h = flatten(maxpool2d(h, 2))

output probs = softmax(dense(h, 10))
train mse(probs, targets) using adam(lr = 1e-3)
