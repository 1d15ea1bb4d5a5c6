# Something of everything, in small.
model every(batch B = 4, T = 6, C = 8, H = 2, V = 12)

input tokens : i32[B, T]
input next   : i32[B, T]
input image  : f32[B, 3, 8, 8]
input mask   : bool[T, T]

block mlp(x, width = 2*C, act = tanh) {
  return dense(gelu(dense(x, width), form = act), C)
}
checkpoint block layer(x) {
  n = rmsnorm(x)
  q, k, v = split(dense(n, 3*C, bias = false), 3)
  q = rope(transpose(reshape(q, [B, T, H, C/H]), [0, 2, 1, 3]))
  k = transpose(reshape(k, [B, T, H, C/H]), [0, 2, 1, 3])
  v = transpose(reshape(v, [B, T, H, C/H]), [0, 2, 1, 3])
  a = sdpa(q, k, v, mask = mask, causal = true)
  x = x + reshape(transpose(a, [0, 2, 1, 3]), [B, T, C])
  return x + dropout(mlp(layernorm(x)), rate = 0.1)
}

param wte : [V, C] = normal(0.02)
frozen param wpe : [T, C] = uniform(-0.1, 0.1)
const scale : f32[C] = [1, 2, 3, 4, 5, 6, 7, 8]
h = embedding(tokens, wte) + wpe
repeat i in 0..2 { h = layer(h) }
keep h

f = relu(batchnorm(conv2d(image, 4, kernel = 3, pad = same), over = micro))
g = maxpool2d(concat([f, conv2d(f, 4, kernel = 1)], axis = 1), 2)
u = upsample2d(avgpool2d(g, 2), scale = 2, mode = bilinear)
p = global_avgpool(g + u)
e = mean(h[:, 1:5:2, ...], axis = 1) * scale / 2.0
joined = stack([p, e], axis = 1)
recompute joined

output logits = layernorm(h) @ transpose(wte)
output best = argmax(logits, axis = -1)
output pooled = where(greater(joined, 0.0), joined, 0.1 * joined)
train cross_entropy(logits, next) + mse(pooled, pooled * 0.5) using adamw(lr = 1e-3) {
  clip = 1.0
  accumulate = 2
  schedule = cosine(steps = 100, warmup = 5)
  group "*.b" { weight_decay = 0 }
}
