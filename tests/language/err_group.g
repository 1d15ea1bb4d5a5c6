model train(batch B = 4)
input x : f32[B, 6]
y = dense(x, 3)
train mean(y) using adam(lr = 3) { group "z.*" { lr = 0 } }
