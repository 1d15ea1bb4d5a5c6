# How layers and their parameters are named.
model naming(batch B = 2, C = 4)
input x : f32[B, C]

fc1 = dense(x, C)                  # fc1.w: a name of its own
h = dense(fc1, C)                  # dense.0: h is bound again
h = relu(h)
h = dense(h, C)                    # dense.1
h = relu(dense(h, C))              # dense.2: the name goes to the outermost op
h = dense(h, C, name = "head")     # head.w

block pair(x) {
  inner = dense(x, C)
  return dense(inner, C)
}
first = pair(h)                    # first.inner.w, first.dense.0.w
h = pair(first)                    # pair.inner.w
h = pair(h)                        # pair.1.inner.w
repeat i in 0..2 {
  h = pair(h)                      # pair.2, pair.3
  q = dense(h, C)                  # q.0, q.1
  h = h + dense(q, C)              # dense.3, dense.4
  param s : [C] = ones             # s.0, s.1
  h = h * s
}
x = x + h                          # never clashes with the input
output y = x + 1
