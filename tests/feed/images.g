# Rows of 8 x 8 images, told apart; FORMAT stands for a data statement.
model net(batch B = 16)

input x : u8[B, 1, 8, 8]
input y : u8[B]

FORMAT

h = dropout(relu(conv2d(x / 255.0, 4, kernel = 3, pad = same)), 0.1)
logits = dense(reshape(h, [B, 256]), 8)
label = cast(y, i32)

metric accuracy = mean(argmax(logits, axis = 1) == label)
output probs = softmax(logits)
train cross_entropy(logits, label) using adam(lr = 0.01)
