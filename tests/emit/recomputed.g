# An output that the model reads as well: in the least memory it is computed again for the caller.
model recomputed(batch B = 4)
input x : f32[B, 4]
v = softmax(x)
logits = dense(concat([v], axis = -1), 11)
output mid = v
output best = argmax(logits, axis = -1)
