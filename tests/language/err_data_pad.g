# trains
# Samples that fill up a last batch would move what batchnorm takes of the others.
model m(batch B = 16)
input x : u8[B, 1, 8, 8]
input y : i32[B]
data train = npy("x.npy", "y.npy", last = pad) -> x, y
h = batchnorm(conv2d(x / 255.0, 4, kernel = 3))
logits = dense(reshape(h, [B, 144]), 8)
train cross_entropy(logits, y) using adam(lr = 0.01)
