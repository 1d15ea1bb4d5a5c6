model calls(batch B = 4)
input x : f32[B, 6]
a = dense()
b = clip(x, 0)
c = relu(x, x)
d = max(0, x)
e = sum(x, axis = 1.5)
f = softmax(x, axis = "a")
g = reshape(x, [1, 2, 3, 4, 5, 6, 7, 8, 9])
h = relu(x, x = x)
i = dense(x, 3, name = 7)
j = dense(x, 3, name = "n")
k = dense(x, 3, name = "n")
l = relu([1, 2])
m = x @ [1, 2]
n = dim(x, 5)
o = gelu(x, true)
output y = x + 1
