# A hint at the loss, which a step gives out at its end: it is computed once.
model loss(batch B = 16, C = 24)
input x : f32[B, C]
input y : f32[B, C]
checkpoint block layer(x) {
  param w : [C] = normal(0.5)
  return softmax(tanh(softmax(x * w)) * w)
}
e = mse(layer(layer(x)), y)
recompute e
train e using sgd(lr = 0.1)
