# Parameters, running statistics and constants of several dtypes, some with bytes that a string escapes.
model embedded(batch B = 3, C = 7)

input x : f32[B, C, 5, 5]
input word : i32[B]

const scale : f32[3] = [0.5, -1.25, 2]
param table : [20, C] = normal(1)
h = relu(batchnorm(conv2d(x, 9, kernel = 3)))
h = dense(flatten(h), C) + embedding(word, table)
output probs = softmax(dense(h, 3) * scale)
train mse(probs, x[:, 0:3, 0, 0]) using sgd(lr = 0.1)
