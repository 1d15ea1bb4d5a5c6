# A small U-Net: one level down and up again, its skip joined.
model unet(batch B = 2)

input images : f32[B, 2, 8, 8]
input masks  : f32[B, 1, 8, 8]

block double(x, channels) {
  repeat i in 0..2 {
    x = relu(batchnorm(conv2d(x, channels, kernel = 3, pad = same, bias = false)))
  }
  return x
}

a = double(images, 3)
b = double(maxpool2d(a, 2), 5)
u = conv_transpose2d(b, 3, kernel = 2, stride = 2)
c = double(concat(a, u, axis = 1), 3)
logits = conv2d(c, 1, kernel = 1)

output inside = sigmoid(logits)
train bce_with_logits(logits, masks) using sgd(lr = 0.1, momentum = 0.9)
