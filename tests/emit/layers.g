# options: --threads 4
# Equal layers (a loop over a table), concat in place, slices, softmax: poison must not show.
model layers(batch B = 4, T = 16, C = 32, L = 6)
input tokens : i32[B, T]
block layer(x) {
  a = dense(x, C)
  b = relu(dense(x, C))
  y = concat(a, b, axis = 2)
  return softmax(y[:, :, 5:5+C]) * 3.0 + x
}
param table : [50, C] = normal(1)
h = embedding(tokens, table)
repeat i in 0..L { h = layer(h) }
big = expand(reshape(h, [B, 1, T, C]), [B, 16, T, C]) * 0.5
output h = layernorm(h)
output total = sum(big, axis = [1, 2, 3])
