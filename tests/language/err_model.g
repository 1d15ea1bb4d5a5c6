k = 3
model first(batch A = 4, batch B = 5, big C = 3, A = 2)
model second(D = 3)
input x : f32[4]
relu(x)
y = relu(x)
output y
output y
group "a" { lr = 1 }
train y using adam(lr = 1)
train mean(y) using adam(lr = 1)
