# A table of words, for indices that are wrong and calls that fail.
model lookup(batch B = 3, T = 5, C = 8, V = 11)

input words : i32[B, T]
input next : i32[B, T]

param table : [V, C] = normal(0.1)
h = tanh(dense(embedding(words, table), C))
logits = h @ transpose(table)
output best = softmax(logits)
train cross_entropy(logits, next) using adam(lr = 1e-2) {
  clip = 1.0
  schedule = cosine(steps = 20, warmup = 3)
}
