model declarations(batch B = 4, C = 2)
input a : [B, C]
input b : i64[B]
input c : bool[B, C]
input d : u8[B]
param p1 : [C, 3]
param p2 : [C] = ones
param p3 : f32 = 0.5
param p4 : [8, C, 3, 3] = he
param p5 : [C] = uniform(-1, 1)
param p6 : [C] = normal(0.02)
param p7 : [C] = normal(1, 0.02)
param p8 : [2, 2] = [[1, 2], [3, 4]]
frozen param p9 : [C, C] = xavier
const c1 : i32[3] = [1, -2, 3]
const c2 : f32[2, 2] = const(0.25)
const c3 = [1, 2]
checkpoint block f(x) { return dense(x, C) }
h = f(a)
keep h
g = h @ p9 * c3[1]
recompute g
output g
train mean(g) using adamw(3e-4, weight_decay = 0.1, beta2 = 0.95) {
  clip = 1.0; accumulate = auto
  schedule = cosine(steps = 1000, warmup = 10)
  group "*.b" { weight_decay = 0 }
  group "h.dense.?.w" {
    lr = 1e-5
  }
}
