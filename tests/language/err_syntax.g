model syntax(batch B = 4)
imput x : f32[B]
a = relu(dense(x, 3)
b = relu(a
output b
c = (1 + 2]
d = 1 +* 2
e = 1. + 2
f = .5
g = 3x
h = x $ y $ z
i = "abc
repeat i of 0..3 { k = i }
train a with adam(lr = 1)
j = [1, 2
k = 3
block f(x)
{
  return x
}
l = a b
m = é
n = 99999999999999999999
o = 1e999
p = f(a, ,)
}
