# Names that C, C++ or the header itself would refuse.
model double(batch B = 2)
input int : f32[B]
input init : f32[B]
input class : f32[B]
input Class : f32[B]
input tensors : f32[B]
sum = int + init + class + Class + tensors
output strerror = sum
output f32 = sum * 2
output forward_count = sum * 3
