# Large enough for the system to notice: nothing but the arena may be resident.
model memory(batch B = 16, S = 64)
input x : f32[B, 3, S, S]
h = relu(conv2d(x, 32, kernel = 3, pad = same))
h = maxpool2d(h, 2)
h = relu(conv2d(h, 64, kernel = 3, pad = same))
output y = dense(global_avgpool(h), 10)
