# Words mean something only where they can stand: all of them are fine as names.
model words(batch batch = 4, model = 6)
input input : f32[batch, model]
input next : f32[batch, model]
same = relu(input)
param = same + next
xavier, zeros = split(param, 2, axis = 1)
param he : [3] = he
const = xavier * he
output = concat(const,
                zeros, axis = 1)
block block(x, tanh = exact) { return gelu(x, tanh) }
repeat repeat in 0..2 { output = output * repeat }
in = block(output)
using = in + 1; keep = using
keep keep
train = gelu(keep, tanh)
return = train
group = return
output group
frozen, shared = split(group, 2, axis = 0)
output checkpoint = frozen +
  shared
train mean(group) using sgd(lr = 0.1)
