# A decoder over characters.
model chars(batch B = 16, T = 48, C = 48, L = 2, H = 4, V = 128)

input tokens : i32[B, T]
input next   : i32[B, T]

block layer(x) {
  x = x + attention(layernorm(x), heads = H, causal = true)
  h = gelu(dense(layernorm(x), 4*C), form = tanh)
  return x + dense(h, C)
}

param wte : [V, C] = normal(0.02)
param wpe : [T, C] = normal(0.02)
h = embedding(tokens, wte) + wpe
repeat i in 0..L { h = layer(h) }
logits = layernorm(h) @ transpose(wte)

output logits
train cross_entropy(logits, next) using adamw(lr = 3e-3, weight_decay = 0.01) {
  clip = 1.0
  schedule = cosine(steps = 400, warmup = 20, floor = 0.1)
  group "*.b" { weight_decay = 0 }
}
