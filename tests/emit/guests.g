# Equal layers, and between the ops of one of them an op that is none of theirs.
model guests(B = 2)

input x : f32[B, 5]

h = cumsum(softmax(x), axis = 1)
h = cumsum(softmax(h), axis = 1)
s = softmax(h)
output last = max(s, axis = 1)
h = cumsum(s, axis = 1)
h = cumsum(softmax(h), axis = 1)
h = cumsum(softmax(h), axis = 1)
h = cumsum(softmax(h), axis = 1)
output y = h
