# What is appended to shapes.onnx to train its last layer: labels, a metric, a loss.
input labels : i32[batch]

metric accuracy = mean(argmax(logits, axis = 1) == labels)

train cross_entropy(logits, labels) using adam(lr = 0.01) {
  group "conv*" { frozen = true }
  group "bn*" { frozen = true }
}
