# Outputs of all kinds: with the batch first, second or nowhere, of reals and of integers.
model outputs(batch B = 8, T = 3)

input x      : f32[B, T, 6]
input labels : i32[B]

h = gelu(dense(x, 5))
param scale : [5] = normal(1)
logits = dense(flatten(h), 4)

output probs = softmax(logits)
output turned = transpose(mean(h, 1))
output class = argmax(logits, 1)
output still = exp(scale)
output scaled = h * scale
train cross_entropy(logits, labels) using sgd(lr = 0.1)
