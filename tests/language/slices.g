model slices(batch B = 4, C = 6)
input x : f32[B, C, 8]
output a = relu(x[0])
output b = relu(x[:, 0:3])
output c = relu(x[..., -1])
output d = relu(x[1:-1, ::2, 7:0:-3])
output e = relu(x[-1, -2:, :2])
output f = relu(x[::-1])
output g = relu(x[:, 1][:, 2:4])
