model columns(batch B = 4)
input x : f32[B, 6]
	y =	relu(	zz)  # 日本
	output y = x +	relu(zzz)
