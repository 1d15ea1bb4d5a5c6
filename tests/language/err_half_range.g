# What 16 bits do not hold.
model m(batch B = 4)

input x : f16[B, 3]

param a : f16[3] = 70000
param b : f16[2, 2] = [[1, 2], [3, -65505]]
param c : f16[3] = uniform(-1e5, 1)
param d : bf16[3] = 3.4e38
param e : f16[3] = [65504, 1e39, -1e39]
const k : f16[3] = [1, 2, 1e6]
output y = x * e
