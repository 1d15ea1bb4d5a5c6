# Dtypes that are only stored: as inputs, parameters, constants and outputs, and casts between them.
model stored(batch B = 16)

input real : f64[B]
input half : f16[B]
input brain : bf16[B]
input tiny : i8[B]
input short : u16[B]
input word : u32[B]
input long : i64[B]

param p_f16 : f16[3] = [1, -0.1, 1e39]
param p_bf16 : bf16[2] = 0.1
param p_f64 : f64[2] = 0.1
frozen param p_i8 : i8[3] = [-128, 127, -1]
const p_u16 : u16[2] = 65535
const p_u32 : u32[2] = 4294967295

# From reals, at the edges of what they become.
output real_f32 = cast(real, f32)
output real_f16 = cast(real, f16)
output real_bf16 = cast(real, bf16)
output real_i8 = cast(real, i8)
output real_u8 = cast(real, u8)
output real_u16 = cast(real, u16)
output real_i32 = cast(real, i32)
output real_u32 = cast(real, u32)
output real_i64 = cast(real, i64)
output real_bool = cast(real, bool)

# From integers, which wrap, and round where there are too few digits.
output long_i8 = cast(long, i8)
output long_u16 = cast(long, u16)
output long_u32 = cast(long, u32)
output long_bf16 = cast(long, bf16)
output long_f64 = cast(long, f64)

# To what computes, and through it.
output half_f32 = cast(half, f32) * 2
output brain_f32 = cast(brain, f32) + 0
output tiny_i32 = cast(tiny, i32) - 1
output short_i32 = cast(short, i32) + 1
output word_i64 = cast(word, i64) + 1
output there_and_back = cast(cast(cast(real, f32), f16), f32)

# Parameters as they are, and a view of one.
output same = p_f64
output flipped = flip(p_f16, axis = 0)
output all = cast(p_f16[0], f32) + cast(p_bf16[0], f32) + cast(p_f64[0], f32) + cast(cast(p_i8[0], i32) + cast(p_u16[0], i32), f32) + cast(cast(p_u32[0], i64), f32)
