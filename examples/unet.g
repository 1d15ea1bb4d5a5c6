# U-Net that cuts a picture into inside and outside: 31,037,633 parameters
# (Ronneberger et al., 2015; with padding and batch normalisation).
model unet(batch B = 4, S = 512, W = 64)

input images : f32[B, 3, S, S]
input masks  : f32[B, 1, S, S]

block double(x, channels) {
  repeat i in 0..2 {
    x = relu(batchnorm(conv2d(x, channels, kernel = 3, pad = same, bias = false)))
  }
  return x
}

block up(x, skip, channels) {
  x = conv_transpose2d(x, channels, kernel = 2, stride = 2)
  return double(concat(skip, x, axis = 1), channels)
}

a = double(images, W)
b = double(maxpool2d(a, 2), 2*W)
c = double(maxpool2d(b, 2), 4*W)
d = double(maxpool2d(c, 2), 8*W)
e = double(maxpool2d(d, 2), 16*W)

d = up(e, d, 8*W)
c = up(d, c, 4*W)
b = up(c, b, 2*W)
a = up(b, a, W)
logits = conv2d(a, 1, kernel = 1)

output inside = sigmoid(logits)
train bce_with_logits(logits, masks) using adam(lr = 1e-4)
