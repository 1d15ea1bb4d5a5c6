# The encoder of BERT-base with a classifier on top: 109,483,778 parameters (Devlin et al., 2018).
model bert(batch B = 16, T = 128, C = 768, L = 12, H = 12, V = 30522, P = 512, K = 2)

input tokens   : i32[B, T]
input segments : i32[B, T]
input seen     : bool[B, T]   # false where a short text was filled up
input labels   : i32[B]

block norm(x) { return layernorm(x, eps = 1e-12) }
block mlp(x) { return dense(gelu(dense(x, 4*C)), C) }
block layer(x, mask) {
  x = norm(x + dropout(attention(x, heads = H, mask = mask), 0.1))
  return norm(x + dropout(mlp(x), 0.1))
}

param words     : [V, C] = normal(0.02)
param positions : [P, C] = normal(0.02)
param kinds     : [2, C] = normal(0.02)

h = embedding(tokens, words) + positions[0:T] + embedding(segments, kinds)
h = dropout(norm(h), 0.1)
mask = reshape(seen, [B, 1, 1, T])
repeat i in 0..L { h = layer(h, mask) }

pooled = tanh(dense(h[:, 0], C))
logits = dense(dropout(pooled, 0.1), K)

output hidden = h
output probs = softmax(logits)
train cross_entropy(logits, labels) using adamw(lr = 2e-5, weight_decay = 0.01) {
  clip = 1.0
}
