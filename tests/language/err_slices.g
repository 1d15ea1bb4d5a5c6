model slices(batch B = 4)
input x : f32[B, 6]
a = x[4]
b = x[-5]
c = x[0, 0, 0]
d = x[:, 2:7]
e = x[:, 3:3]
f = x[::0]
g = x[..., ...]
h = x[x]
i = B[0]
j = x[1.5]
output y = x[0] + 1
