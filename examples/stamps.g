# Drawings and photographs in folders, a class each: the stamps of Debian's tuxpaint-stamps-default.
#     gplan run examples/stamps.g --budget 64M -- train --epochs 20 --schedule cosine
model stamps(batch B = 16, S = 64)

input pictures : u8[B, 3, S, S]
input kinds : i32[B]
data train = images("/usr/share/tuxpaint/stamps", flip = true, crop = 0.5, split = 0.2,
    corrupt = skip) -> pictures, kinds

block layer(x, c) {
  return maxpool2d(relu(groupnorm(conv2d(x, c, kernel = 3, pad = same), groups = 8)), 2)
}
h = layer(pictures / 127.5 - 1.0, 32)
h = layer(h, 64)
h = layer(h, 128)
logits = dense(dropout(global_avgpool(h), 0.2), 16)

output probs = softmax(logits)
metric accuracy = mean(argmax(logits, axis = 1) == kinds)
train cross_entropy(logits, kinds) using adamw(lr = 1e-3, weight_decay = 0.01)
