# Where a statement ends and where a line goes on.
model lines(batch B = 4); input x : f32[B, 6]; a = relu(x); b = relu(a);
block f(x) { y = x * 2; return y } c = f(b)
d = a +
  b *   # a comment does not end it

  c
e =
  concat(
    a, b
    , c
    , axis = 1
  )
f,
g = split(d, 2,
          axis = 1)
repeat i in 0..
  2 { d = d + i }
output e; output f; output g
output d
