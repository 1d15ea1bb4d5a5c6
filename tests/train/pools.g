# Pools after a relu, with windows that overlap and such that do not.
model pools(batch B = 6)

input x : f32[B, 3, 17, 19]
input y : i32[B]

first = relu(conv2d(x, 8, kernel = 3, pad = same))
second = relu(conv2d(maxpool2d(first, 3, stride = 2, pad = 1), 12, kernel = 3, pad = same))
third = relu(conv2d(maxpool2d(second, 2), 12, kernel = 1))

train cross_entropy(dense(global_avgpool(maxpool2d(third, 3, stride = 1)), 10), y) using adam(lr = 1e-2)
