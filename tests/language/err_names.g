model names(batch B = 4, channels = 6)
input images : f32[B, channels]
input images : f32[B]
a = relu(image)
b = rellu(images)
c = dense(images, unit = 4)
d = gelu(images, form = tahn)
e = gelu(images, tahn)
f = cast(images, f23)
g = later + 1
later = a
param w : [chanels] = norml(0.1)
input x : int[B]
input y : f33[B]
keep imagess
output nothing
output images
h = images(3)
channels = 7
const k = 1
k = 2
