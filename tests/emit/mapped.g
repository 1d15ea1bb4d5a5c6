# options: --params external
# Parameters in a mapped file.
model mapped(batch B = 2)
input x : f32[B, 6]
h = relu(dense(x, 5))
output y = dense(h, 3)
