# Elementwise epilogues of products of all kinds: rows, columns, vectors, images, windows of a concat.
model epilogues(batch B = 6)

input x : f32[B, 4, 9, 9]
input t : f32[B, 10]
input seen : bool[B, 24]

# by channel, after a convolution, into a window; what stands before it; a strided one
a = relu(batchnorm(conv2d(x, 6, kernel = 3, pad = same, bias = false)))
b = tanh(x) * sigmoid(conv2d(x, 4, kernel = 1))
d = silu(conv2d(x, 4, kernel = 3, pad = same, groups = 4))
h = concat(a, b, d, axis = 1)
u = conv_transpose2d(maxpool2d(h, 2), 14, kernel = 3, stride = 2)
h = relu(u + h)

param slope : [9]

# by column, with a residual, a mask, dropout; after batches of products
r = gelu(dense(global_avgpool(h), 24))
r = r + dropout(dense(r, 24) * where(seen, 1.0, 0.5), 0.25)
m = reshape(r, [B, 3, 8])
m = (m @ transpose(m)) * 0.25 + 1.0
v = tanh(reshape(m, [B, 9]) @ reshape(slope, [9])) # a vector
w = r + 0.5 * reshape(v, [B, 1])
y = dense(w, 10)
output p = exp(log_softmax(y))
output s = v * v
train mse(y, t) using adam(lr = 1e-2)
