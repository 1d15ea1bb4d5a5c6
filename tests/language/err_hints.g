model hints(batch B = 4)
input x : f32[B, 6]
y = dense(x, 3)
keep x
keep y
recompute y
keep B
output y
