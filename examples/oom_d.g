# From an out-of-memory report: ten units on fifty features. It fits anywhere; the memory went
# elsewhere.
model oom_d(batch B = 100)

input features : f32[B, 50]
input targets  : f32[B, 10]

output y = dense(features, 10)
train mse(y, targets) using adam(lr = 1e-3)
