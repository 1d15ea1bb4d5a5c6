# GPT-2: 124,439,808 parameters (Radford et al., 2019). The last matrix is the embedding again.
model gpt2(batch B = 8, T = 1024, C = 768, L = 12, H = 12, V = 50257)

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
  accumulate = auto
}
