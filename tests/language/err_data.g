# Settings, files and inputs of data statements that are wrong.
model m(batch B = 64)
input x : f32[B, 3, 8, 8]
input y : i32[B]
input z : i32[4]
w = 3
data test = images("a") -> x, y
data train = imges("a") -> x, y
data train = images("a", shuffel = true) -> x, y
data train = idx("a") -> x, y
data train = idx("a", "b", last = keep, corrupt = 3, split = 1.5) -> x, y
data train = idx("a", "b") -> z, w
data train = idx("a", "b") -> x, q
data train = npy("a", "b", "c") -> x, y
data train = tokens("a") -> x, y
data train = csv("a", columns = ["x"]) -> x, y
data train = npy("a", B) -> x, y
data train = images() -> x
data eval = npy("x.npy", flip = true) -> y
output o = mean(x)
