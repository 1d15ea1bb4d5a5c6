model quiet(batch B = 4)
input x : f32[B, 6]
y = dense(x, 3)
