# More elements than 32 bits can count: 3 * 2^30 in each tensor.
model big(batch B = 3, N = 1073741824)

input x : f32[B, N]
param w : [N] = zeros
output y = x * w + 1.5
