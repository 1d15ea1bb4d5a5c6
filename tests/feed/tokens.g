# What comes next in a text of 32 tokens.
model net(batch B = 16, T = 7)

input tokens : u16[B, T]
input next   : u16[B, T]

data train = tokens("tokens.bin", stride = 3, split = 0.2) -> tokens, next

param wte : [32, 16] = normal(0.1)
h = relu(dense(embedding(cast(tokens, i32), wte), 32))
logits = dense(h, 32)
label = cast(next, i32)

metric accuracy = mean(argmax(logits, axis = 2) == label)
output probs = softmax(logits)
train cross_entropy(logits, label) using adam(lr = 0.01)
