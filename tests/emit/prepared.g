# What is made of parameters alone is made once after they were written.
model prepared(B = 2, C = 4)
input x : f32[B, C, 5, 5]
param gain : [C] = normal(1.0)
h = relu(batchnorm(conv2d(x, C, kernel = 3)))
output y = global_avgpool(h) * exp(gain)
