model net(batch B = 512, W = 16, L = 4)

input x : f32[B, W]
input y : i32[B]

block layer(x) {
  return x + dense(gelu(dense(x, 4*W)), W)
}

h = x
repeat i in 0..L { h = layer(h) }

output z = dense(h, 10)
train cross_entropy(z, y) using adamw(lr = 1e-3)
