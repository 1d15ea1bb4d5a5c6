# Small enough for every optimizer: the test puts one in.
model tiny(batch B = 8)

input x      : f32[B, 6]
input labels : i32[B]

fc1 = dense(x, 7)
fc2 = dense(tanh(fc1), 5)

output probs = softmax(fc2)
train cross_entropy(fc2, labels) using OPTIMIZER
