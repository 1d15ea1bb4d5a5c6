# The gradient of exp reads its result: as it is where others do, rounded where that alone is read.
# trains
# pass: train
model m(batch B = 4)

input x : f32[B, 8]

param p : f32[8] = 1
param q : f32[8] = 1
both = exp(x * p)
rounded = exp(x * q)

train mean(both * cast(both, bf16) + cast(rounded, bf16)) using sgd(lr = 0.1)
