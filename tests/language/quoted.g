# Names in quotes: any text, and in a repeat with its index.
model quoted(batch B = 2)

input "x/0:é" : f32[B, 4]
param "w \"\\ \{i\}" : [4, 4]
"a.b" = "x/0:é" @ "w \"\\ \{i\}"
h = "a.b"
repeat i in 0..2 {
  param "h.{i}.w" : [4, 4]
  repeat k in 0..2 {
    frozen param "h.{i}.{2*k+3}.b" : [4] = ones
    h = h + "h.{i}.{2*k+3}.b"
  }
  const "c{i+1}" : f32[4]
  h = h @ "h.{i}.w" + "c{i+1}"
}
output "y:0" = relu(h)
