"""gplan beside PyTorch and ONNX Runtime: the same weights, the same inputs, the same results.

usage: check.py GPLAN [ops|optimizers|models|weights|precision|EXAMPLE]...

An example is one of the models. Exits with 1 where something is wrong; says so and exits with 0
where PyTorch is not installed.

An error is judged beside PyTorch's own in single precision. A wrong term of a sum shows as a
thousandth of the largest value and more; programs that only round in another order differ by a
small factor. One op at one size is few numbers, some of which PyTorch hits by chance: 8 times its
error is taken. A model's tensors are many, and all that ran before has rounded them: 4 times. Most
seen is 2.1. What is below errors.LEAST is never a fault."""
import sys

sys.dont_write_bytecode = True
try:
    import numpy  # noqa: F401
    import torch
except ImportError as missing:
    print(f"check-peers: {missing.name} is not installed in {sys.executable}: nothing was "
          "compared.\nGive a Python that has torch, torchvision, onnx and onnxruntime: "
          "make check-peers PYTHON=...")
    sys.exit(0)

from emitted import THREADS  # noqa: E402
from errors import Table  # noqa: E402


def main():
    whole = ["ops", "optimizers", "models", "weights", "precision"]
    gplan, parts = sys.argv[1], sys.argv[2:] or whole
    examples = [part for part in parts if part not in whole]
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__}. Errors are against PyTorch in double, as shares of the "
          "largest value.")
    wrong = 0
    for part in [part for part in parts if part in whole] + ["models"] * bool(examples):
        table = Table(part, 4 if part in ("models", "weights") else 8)
        __import__(part).check(gplan, table, *([examples] if part == "models" and examples else []))
        wrong += table.wrong
    print(f"\n{wrong} wrong" if wrong else "\nall agree")
    sys.exit(wrong > 0)


main()
