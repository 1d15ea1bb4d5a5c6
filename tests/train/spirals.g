# Three spiral arms in the plane.
model spirals(batch B = 300)

input points : f32[B, 2]
input arms   : i32[B]

h = tanh(dense(points, 48))
h = tanh(dense(h, 48))
logits = dense(h, 3)

output probs = softmax(logits)
train cross_entropy(logits, arms) using adam(lr = 0.01) { schedule = cosine(steps = 1000) }
