# Adam with other powers for some parameters, and with none for one.
model betas(batch B = 3, N = 300)

input x : f32[B, N]
input y : f32[B, N]

param a : [N] = normal(0.5)
param b : [N] = normal(0.5)
param c : [N] = normal(0.5)
param d : [N] = normal(0.5)
train mse(x * a + b * c + d, y) using adam(lr = 1e-2) {
  group "b" { beta1 = 0.0; beta2 = 0.0 }
  group "c" { beta2 = 0.9 }
}
