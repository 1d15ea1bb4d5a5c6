"""How far a result is from the truth: a computation in double by PyTorch. What PyTorch itself gets in
single precision stands beside it, so that a large error of both is one of the problem."""
import sys

import numpy

LEAST = 2e-6  # of the largest value: a few roundings are no fault
TIMES = 8     # as large an error as PyTorch's own is none either


class Table:
    def __init__(self, title):
        self.wrong = 0
        print(f"\n{title:64} {'tensor':28} {'gplan':>9} {'PyTorch':>9}")

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

    def row(self, what, tensor, ours, theirs, truth):
        self.line(what, tensor, self.error(ours, truth), self.error(theirs, truth))

    def line(self, what, tensor, mine, other):
        good = mine <= max(LEAST, TIMES * other)
        self.wrong += not good
        print(f"{what:64.64} {tensor:28.28} {mine:9.1e} {other:9.1e}{'' if good else '  WRONG'}")
        sys.stdout.flush()
