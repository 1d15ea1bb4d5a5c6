# args: -D Chanels=3 -D B=2
model define(batch B = 4, Channels = 3)
input x : f32[B, Channels]
output y = relu(x)
