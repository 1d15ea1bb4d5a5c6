# A table that is read and multiplied: its gradient has several parts in each micro-batch.
model tied(batch B = 16, T = 6, C = 72, V = 128)

input x : i32[B, T]
input labels : i32[B]

param table : [V, C] = normal(0.1)
h = embedding(x, table)
h = h + dense(gelu(layernorm(h)), C)
h = mean(h, axis = 1)
logits = h @ transpose(table)
output probs = softmax(logits)
metric accuracy = mean(cast(argmax(logits, axis = 1) == labels, f32))
train cross_entropy(logits, labels) using adam(lr = 0.01) { clip = 0.5 }
