model numbers(batch B = 4, C = 10, D)
input x : f32[B, C]
a = C/3
b = C/0
c = 1.5/0
d = 9223372036854775807 + 1
e = 3037000500 * 3037000500
f = (-9223372036854775807 - 1) / -1
input g : f32[C - 10]
input h : f32[4611686018427387904, 8]
input i : f32[1, 2, 3, 4, 5, 6, 7, 8, 9]
input j : f32[1.5]
repeat i in 0..2000000 { k = i }
repeat i in 3..1 { k = i }
repeat i in 0..1.5 { k = i }
l = log(0)
m = x + (1 > "a")
param p : [3] = [1, 2]
param q : i32[2] = [1, 2.5]
param r : u8[2] = [1, 256]
param s : [2] = uniform(2, 1)
param t : i32[2] = xavier
output y = 3
