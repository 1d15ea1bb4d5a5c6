model metrics(batch B = 4)
input x : f32[B, 3]
output y = dense(x, 5)
metric size = mean(y)
