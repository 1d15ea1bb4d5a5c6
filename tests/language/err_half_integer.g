# Integers are not rounded to 16 bits unasked: products refuse them as they do in f32.
# args: --precision bf16
model m(batch B = 4)

input i : i32[B, 8]

param w : f32[8, 3]
output y = matmul(i, w)
output d = dense(i, 3)
output c = conv2d(reshape(i, [B, 1, 2, 4]), 2, kernel = 1)
output good = matmul(cast(i, f32), w)
