# Elementwise work on every dtype, with literals, broadcasting and odd numbers.
model dtypes(batch B = 5)
input f : f32[B, 3]
input g : f32[3]
input i : i32[B, 3]
input n : i64[B, 3]
output mixed = where(f > g, f * 2.0, -0.5 * g) + clip(f, -0.1, 0.3)
output whole = i * 3 - 7
output long = n + n
output sign = and(f > 0, not(i > 2))
output cut = cast(f * 1000000000000.0, i32)
output number = cast(i, f32) / 4
output flag = cast(f, bool)
output power = pow(abs(f) + 1.0, 2.0)
