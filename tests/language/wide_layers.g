# Layers that stay f32 beside others of 16 bits: one layer, a block, a loss in its place.
# args: --precision bf16
model m(batch B = 4)

input x : f32[B, 8]
input y : i32[B]

block tail(x) { return tanh(dense(x, 6)) }

precision "head.*" = f32
h = relu(dense(x, 16))
fc2 = dense(h, 8) + x
head = tail(fc2)
output head
train cross_entropy(dense(head, 3), y) using sgd(lr = 0.1) {
  precision = f16
  precision "fc?" = f32
}
