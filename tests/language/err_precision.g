# A loss in 16 bits, a precision that is none.
model m(batch B = 4)

input x : bf16[B, 8]

y = dense(x, 3)
train cast(mean(y), bf16) using sgd(lr = 0.1) {
  precision = i32
}
