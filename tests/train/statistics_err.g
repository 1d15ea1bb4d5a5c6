model t(batch B = 4)
input x : f32[B, 8, 4, 4]
input y : f32[B, 8, 4, 4]
input given : f32[8]
param s : [8] = ones
param z : [8]
param both : [2, 8]
const still : [8] = ones
a = batchnorm(x, s, z, z, still)
b = batchnorm(x, s, z, given, s)
e = batchnorm(x, s, z, z, both[1])
c = batchnorm(x, s, z, z + 1.0, s)
param m : [8]
d = batchnorm(x, s, z, m, m)
train mse(a + b + c + d + e, y) using sgd(lr = 0.1)
