# Dtypes that are only stored, there and back: the bits of C.
model stored(batch B = 33, N = 7)

input x : f32[B, N]
input n : i32[B]

param p_f16 : f16[N] = 1.1
param p_bf16 : bf16[N] = [1, -2.3, 3e-40, 0.1, 1e38, 0, -0.7]
param p_f64 : f64[N] = 0.1
frozen param p_i8 : i8[N] = -128
const p_u16 : u16[N] = 65535
const p_u32 : u32[N] = 4294967295

output as_f16 = cast(cast(x, f16), f32)
output as_bf16 = cast(cast(x, bf16), f32)
output as_f64 = cast(cast(cast(x, f64), f16), f32)
output as_i8 = cast(cast(cast(x * 300, i8), i32), f32)
output as_u16 = cast(cast(cast(x * 90000, u16), i32), f32)
output as_u32 = cast(cast(cast(x * 5e9, u32), i64), f32)
output wrapped = cast(cast(cast(n * 1234567, i8), i32), f32)
output p = cast(p_f16, f32) + cast(p_bf16, f32) + cast(p_f64, f32) + cast(cast(p_i8, i32) + cast(p_u16, i32), f32) + cast(cast(p_u32, i64), f32)
