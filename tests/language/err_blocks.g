model blocks(batch B = 4)
input x : f32[B, 6]
block f(a, n = 3) { return dense(a, n) }
a = f()
b = f(x, 1, 2)
c = f(x, m = 3)
d = f(x, 3, n = 4)
block again(a) { return again(a) }
e = again(x)
block early(a) { return late(a) }
block late(a) { return a }
g = early(x)
block bad(a) { return a @ x }
block outer(a) { return relu(bad(a)) }
h = outer(x)
block nothing(a) { b = a }
block f(a) { return a }
block mixed(a) { input z : f32[3]; return a; b = a }
block unseen(a) { return a + after }
after = x + 1
i = unseen(x)
repeat i in 0..2 { local = x + i }
j = local
k, l = f(x)
block two(a) { return a, a }
m = two(x)
return x
output y = x + 1
