# A norm that is applied twice, and ids that may be wrong after it and in a branch of their own.
model statistics(batch B = 4)

input x      : f32[B, 3, 2, 2]
input labels : i32[B]
input words  : i32[B]

shared block norm(x) { return batchnorm(x, over = micro) }
a = norm(x)
b = norm(relu(a) * 2.0 + 1.0)
logits = dense(flatten(b), 5)
param table : [6, 4] = normal(0.5)
far = dense(embedding(words, table), 5)

output probs = softmax(logits)
train cross_entropy(logits, labels) + 0.5 * cross_entropy(far, labels) using adam(lr = 0.01)
