# All that is added up once for each micro-batch: on ranks as in micro-batches, to the bit.
model dense_layers(batch B = 16, D = 20, H = 160)

input x : i32[B, D]
input labels : i32[B]

h = dropout(relu(dense(cast(x, f32) * 0.125 - 1.0, H)), rate = 0.3)
h = h + gelu(layernorm(dense(h, H)))
logits = dense(h, 10)
output probs = softmax(logits)
metric accuracy = mean(cast(argmax(logits, axis = 1) == labels, f32))
train cross_entropy(logits, labels) using adamw(lr = 0.01) { clip = 0.05 }
