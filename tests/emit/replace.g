# A file that takes the place of another.
model replace(batch B = 2)
input x : f32[B, 30]
param w : [30, 40] = normal(1)
h = dense(x @ w, 5, name = "second")
output z = h
