# Gradients of every kind that micro-batches add where their sum lies: of weights of convolutions,
# in one product, in parts, transposed, depthwise; of biases; of what is repeated for each sample.
model added(batch B = 6, C = 18)

input x : f32[B, 3, 12, 12]
input y : i32[B]

param place : [C, 12, 12] = normal(0.02)
h = relu(conv2d(x, C, kernel = 3, pad = same)) + place
h = relu(conv2d(h, C, kernel = 3, pad = same, groups = C))
h = relu(conv2d(h, 4, kernel = 3, pad = same))
h = relu(conv2d(h, 40, kernel = 1))
h = relu(conv_transpose2d(h, 6, kernel = 2, stride = 2))
h = maxpool2d(h, 2)

train cross_entropy(dense(global_avgpool(h), 10), y) using adam(lr = 1e-2)
