# No layer is called so.
model m(batch B = 4)

input x : f32[B, 8]

precision "heads.*" = f32
head = dense(x, 3)
output head
