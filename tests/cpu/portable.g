# A little of everything whose code differs from instruction set to instruction set.
model portable(batch B = 4, S = 12, C = 24)

input images : f32[B, 3, S, S]
input labels : i32[B]

h = relu(batchnorm(conv2d(images, C, kernel = 3, stride = 2, pad = 1)))
h = maxpool2d(h, 2)
h = gelu(conv2d(h, C, kernel = 3, pad = same, groups = C))
tokens = transpose(reshape(h, [B, C, (S/4)*(S/4)]))
tokens = tokens + attention(layernorm(tokens), heads = 3)
logits = dense(mean(tokens, axis = 1), 10)

output probs = softmax(logits)
train cross_entropy(logits, labels) using sgd(lr = 0.05, momentum = 0.9) {
  clip = 1.0
}
