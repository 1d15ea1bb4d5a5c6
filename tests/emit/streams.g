# Results so large that loops store them past the caches: of one axis, whose length no vector
# divides, of rows, and of rows whose length none divides.
# options: --infer --threads 3
model streams
input x : f32[1031, 1031]
input rows : f32[2, 544, 1040]
input bias : f32[1040]
input odd : f32[1031]
input shift : f32[2, 1, 1]
output one = 2.0 * x + 1.0
output two = relu(rows + bias) * shift
output three = x - odd
