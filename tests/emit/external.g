# options: --io external --params external
# All that is the caller's lies outside the arena; equal layers, so that a table has to say where.
model external(batch B = 2)
input x : f32[B, 8]
input y : f32[B, 8]
h = x
repeat i in 0..6 { h = relu(dense(h, 8)) + x }
output z = h * y
output last = concat(h, y, axis = 1)
output again = h * y # the same as z, in memory of its own
