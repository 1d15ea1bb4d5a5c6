# Numbers are computed now: whole ones stay whole.
# args: -D C=12
model numbers(batch B = 2, C = 4, H = C/4)
input x : f32[B, C]
input n : i32[B, C]
const k = (C + 2) * 3 - 1
const third = 1.0/3
const inv = 1/sqrt(C/H)
a = x * k + third
b = n + 2
c = n / 4 + n * 0.5
d = pow(x, 2) - maximum(0, x)
e = where(x > 0 , x, -1)
f = x * maximum(H, 2) * inv * dim(x, -1) * floor(7/2.0)
g = 2 - -x
output a; output b; output c; output d; output e; output f; output g
