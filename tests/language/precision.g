# What is narrow, what is wide and what follows: products round their parameters, sums are f32.
model m(batch B = 4)

input x : bf16[B, 8]
input half : f16[B, 8]
input t : f32[B, 3]

param w : bf16[8, 3] = 0.5
h = relu(x + 1) @ w
output h
output both = x * half
output wide = exp(x)
output total = sum(half)
output mixed = x * 2 + sum(x)
output rows = softmax(h)
output other = relu(half) @ w
