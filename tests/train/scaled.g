# f16 with a loss scale, and all that a step which overflows must leave as it is.
model scaled(batch B = 8)

input x      : f32[B, 10]
input labels : i32[B]

h = relu(dense(x, 512))
h = relu(batchnorm(dense(h, 12), over = micro))
train cross_entropy(dense(h, 4), labels) using OPTIMIZER {
  precision = f16
  LIMIT = 1.0
}
