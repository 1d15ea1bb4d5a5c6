# Dtypes that are only stored: what computes says so, at the operand.
model m(batch B = 4)

input a : u16[B, 3]
param s : u32[3] = 1
param t : i8[3] = normal(0.1)
param r : f64[3] = uniform(-1, 1)
const k : i8[2] = [127, 128]
input d : float64[B]

output y = a + 1
output z = concat(s, s, axis = 0)
output w = sum(cast(s, f64))
output v = softmax(a)
output u = where(a > 0, a, 0)
