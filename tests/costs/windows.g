# Dense blocks: each concat may be written by those who make its parts.
model windows(batch B = 8, C = 4)

input x : f32[B, C, 6, 6]
input y : i32[B]

h = x
repeat i in 0..3 { h = concat(h, relu(conv2d(h, C, kernel = 3, pad = same)), axis = 1) }
output z = dense(global_avgpool(h), 5)
train cross_entropy(z, y) using sgd(lr = 0.1)
