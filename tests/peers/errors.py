"""How far a result is from the truth: a computation in double by PyTorch. What PyTorch itself gets
in single precision stands beside it, so that a large error of both is one of the problem."""
import sys

import numpy

LEAST = 2e-6  # of the largest value: a few roundings are no fault


class Table:
    def __init__(self, title, times):
        self.wrong, self.times = 0, times  # how many times PyTorch's own error is no fault
        print(f"\n{title:64} {'tensor':28} {'gplan':>9} {'PyTorch':>9} "
              f"{'ONNX' if title == 'models' else '':>9}".rstrip())

    @staticmethod
    def error(got, truth, least=0.0):
        """The largest difference, as a share of the largest value or of `least`, the larger."""
        got, truth = numpy.asarray(got, numpy.float64), numpy.asarray(truth, numpy.float64)
        if got.shape != truth.shape:
            return float("inf")
        if not truth.size:
            return 0.0
        if not numpy.array_equal(numpy.isfinite(got), numpy.isfinite(truth)):
            return float("inf")
        where = numpy.isfinite(truth)
        if not where.any():
            return 0.0
        largest = max(numpy.abs(truth[where]).max(), least)
        return float(numpy.abs(got - truth)[where].max() / (largest or 1))

    def row(self, what, tensor, ours, theirs, truth, onnx=None):
        self.line(what, tensor, self.error(ours, truth), self.error(theirs, truth),
                  None if onnx is None else self.error(onnx, truth))

    def good(self, mine, other):
        return mine <= max(LEAST, self.times * other)

    def line(self, what, tensor, mine, other, onnx=None):
        good = self.good(mine, other)
        self.wrong += not good
        print(f"{what:64.64} {tensor:28.28} {mine:9.1e} {other:9.1e}"
              f"{'' if onnx is None else f' {onnx:9.1e}'}{'' if good else '  WRONG'}")
        sys.stdout.flush()

    def lines(self, what, kind, rows):
        """Of many tensors (ours, theirs, name): the worst of both, and what half are below. Each is
        judged by itself, beside the larger of PyTorch's error of it and of half of them: one that
        PyTorch happens to hit is no measure."""
        if not rows:
            return
        half = len(rows) // 2
        middle = sorted(row[1] for row in rows)[half]
        for mine, other, name in rows:
            if not self.good(mine, max(other, middle)):
                self.line(what, name, mine, max(other, middle))
        self.line(f"{what}: the worst of {len(rows)} {kind}", max(rows)[2], max(rows)[0],
                  max(row[1] for row in rows))
        self.line(f"{what}: half of them are below", "", sorted(row[0] for row in rows)[half],
                  middle)
