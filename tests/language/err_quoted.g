model bad(batch B = 2)
input x : f32[B, 4]
param "h.{i}.w" : [4, 4]
repeat i in 0..2 {
  param "h.{j}" : [4]
  param "g.{i*2}" : [4]
  param "same" : [4]
  h = x + "nothing.{i}"
}
output y = x + "h.{}"
input "in{i}" : f32[4]
"b{i}" = x
output "o{i}"
output "p{i}" = x
