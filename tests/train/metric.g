# Metrics beside a loss that may be computed in chunks.
model metric(batch B = 6, T = 5, C = 8, V = 40)

input tokens : i32[B, T]
input next : i32[B, T]

param table : [V, C] = normal(0.5)
h = embedding(tokens, table)
h = h + dense(tanh(dense(h, 2*C)), C)
logits = h @ transpose(table)

output shown = logits
metric accuracy = mean(argmax(logits, axis = -1) == next)
metric misses = sum(argmax(logits, axis = -1) != next)
metric distance = 0.5 * l1(h[:, 2, 0], h[:, 3, 0]) + mse(h[:, 0, 0], h[:, 1, 0]) / V
train cross_entropy(logits, next) using sgd(lr = 0.5)
