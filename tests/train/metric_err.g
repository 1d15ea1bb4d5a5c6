model metrics(batch B = 4)
input x : f32[B, 3]
input y : i32[B]
logits = dense(x, 5)
metric perplexity = exp(cross_entropy(logits, y))
train cross_entropy(logits, y) using sgd(lr = 0.1)
