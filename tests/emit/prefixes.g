model prefixes(batch B = 4)
input x : f32[B, 8]
input y : f32[B, 3]
h = dense(tanh(dense(x, 5)), 3)
output h
train mse(h, y) using sgd(lr = 0.1)
