model text(batch B = 4)
input x : f32[B, 6]
a = relu("日本")  # 日本
b = rélu(x) + relux(x)
c = relu(x) /*‮*/ + 1
