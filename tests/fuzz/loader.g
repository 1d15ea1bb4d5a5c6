# Parameters of several shapes, constants, running statistics and an optimizer's state.
model net(batch B = 2)

input x : f32[B, 3]
input i : i32[B]

param s : f32
param table : [4, 3]
const c : f32[3] = [1, 2, 3]
h = dense(batchnorm(x * s + embedding(i, table) * c), 2)
train mean(square(h)) using adam(lr = 0.1)
