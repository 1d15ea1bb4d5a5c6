# An LSTM that predicts the next character: the recurrence is unrolled over T steps, and the caller
# carries the state from one call to the next (Hochreiter and Schmidhuber, 1997).
model lstm(batch B = 32, T = 64, C = 256, V = 96)

input chars : i32[B, T]
input next  : i32[B, T]
input h0    : f32[B, C]
input c0    : f32[B, C]

shared block cell(x, h, c) {
  gates = dense(x, 4*C) + dense(h, 4*C, bias = false)
  i, f, o, g = split(gates, 4)
  c = sigmoid(f)*c + sigmoid(i)*tanh(g)
  return sigmoid(o)*tanh(c), c
}

x = embedding(chars, count = V, size = C)
h, c = cell(x[:, 0], h0, c0)
all = h
repeat t in 1..T {
  h, c = cell(x[:, t], h, c)
  all = concat(all, h, axis = 1)
}
logits = dense(reshape(all, [B, T, C]), V)

output probs = softmax(logits)
output h1 = h
output c1 = c
train cross_entropy(logits, next) using adam(lr = 2e-3) {
  clip = 5.0
}
