# A GPT of any depth, small otherwise: for measuring how planning scales.
model deep(batch B = 8, T = 128, C = 64, L = 12, H = 4, V = 512)

input tokens : i32[B, T]
input next   : i32[B, T]

block mlp(x) {
  return dense(gelu(dense(x, 4*C), form = tanh), C)
}
block layer(x) {
  x = x + attention(layernorm(x), heads = H, causal = true)
  return x + mlp(layernorm(x))
}

param wte : [V, C] = normal(0.02)
param wpe : [T, C] = normal(0.02)
h = embedding(tokens, wte) + wpe
repeat i in 0..L { h = layer(h) }
logits = layernorm(h) @ transpose(wte)

output logits
train cross_entropy(logits, next) using adamw(lr = 3e-4, weight_decay = 0.1) {
  clip = 1.0
}
