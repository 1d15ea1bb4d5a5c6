# Turns of a repeat that become turns of a loop, with a table of what differs.
model turns(batch B = 2, C = 5)

input x : f32[B, C]

block layer(x) {
  param w : [C] = normal(0.5)
  return softmax(tanh(x) * w)
}

h = x
repeat i in 0..12 { h = layer(h) + x }
output y = h
