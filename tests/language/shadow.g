# A block may take the name of an op; inside it the op is still meant.
model shadow(batch B = 2, C = 4)
input x : f32[B, C]
block dense(x, n = C, m = n*2) { return dense(dense(x, m), n) }
block conv(x, act = tanh, form = act) { return gelu(x, form = form) }
h = conv(dense(x))
h = conv(h, exact)
output h
