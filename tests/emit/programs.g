# Programs that are left out: run.sh asks for several.
model programs(batch B = 8)
input x : f32[B, 6]
input y : i32[B]
h = dropout(relu(dense(x, 16)), 0.2)
logits = dense(h, 4)
output p = softmax(logits)
train cross_entropy(logits, y) using adam(lr = 0.01)
