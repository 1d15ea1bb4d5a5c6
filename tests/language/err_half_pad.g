# A margin that 16 bits do not hold; infinities and what bf16 holds are good.
model m(batch B = 4)

input x : f16[B, 3]

output wide = pad(cast(x, bf16), 1, value = 1e6)
output low = pad(x, 1, value = -1e39)
output y = pad(x, 1, value = 70000)
