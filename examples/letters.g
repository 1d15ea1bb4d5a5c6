# A small GPT that writes letter by letter, on a text of your own or the sayings of Debian's fortunes:
#     cc examples/tokens.c -o tokens
#     ./tokens letters.bin /usr/share/games/fortunes/{fortunes,literature,riddles}
#     gplan run examples/letters.g --budget 64M -- train --epochs 5 --schedule cosine
model letters(batch B = 16, T = 128, C = 128, L = 3, H = 4, V = 256)

input text : u16[B, T]
input next : u16[B, T]
data train = tokens("letters.bin", split = 0.05) -> text, next

block layer(x) {
  x = x + attention(layernorm(x), heads = H, causal = true)
  return x + dense(gelu(dense(layernorm(x), 4*C), form = tanh), C)
}

param wte : [V, C] = normal(0.02)
param wpe : [T, C] = normal(0.02)
h = embedding(cast(text, i32), wte) + wpe
repeat i in 0..L { h = layer(h) }
logits = layernorm(h) @ transpose(wte)

letter = cast(next, i32)
output probs = softmax(logits)
metric accuracy = mean(argmax(logits, axis = 2) == letter)
train cross_entropy(logits, letter) using adamw(lr = 2e-3, weight_decay = 0.1) {
  clip = 1.0
}
