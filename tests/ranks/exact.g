# Every sum but the loss is of two rows at most, or over ranks: all targets have the same bits.
model exact(batch B = 4, D = 9000)

input x : i32[B, D]
input labels : i32[B]

param p : [D] = normal(0.3)
param q : [D] = normal(0.3)
param short : [700] = normal(0.3)
h = cast(x, f32) * 0.125 * p - q
h = h + reshape(concat(short, q[700:D], axis = 0), shape = [1, D])
h = h + 0.01 * reshape(cast(labels, f32), shape = [B, 1])
metric accuracy = mean(mean(h * h, axis = 1))
train mean(mean(gelu(h), axis = 1)) using sgd(lr = 0.5, momentum = 0.9)
