# trains
# A sum counts samples that fill up a last batch, though the metric leaves them out.
model m(batch B = 16)
input x : f32[B, 4]
input y : i32[B]
data train = csv("train.csv") -> x, y
data eval = csv("eval.csv") -> x, y
logits = dense(x, 3)
metric accuracy = mean(argmax(logits, axis = 1) == y)
train cross_entropy(logits, y, reduction = sum) using sgd(lr = 0.01)
