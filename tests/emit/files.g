# Parameters of three shapes, for files that are right and wrong.
model files(batch B = 2)
input x : f32[B, 3]
param w : [3, 4] = normal(1)
h = dense(x @ w, 5, name = "second")
output z = h
