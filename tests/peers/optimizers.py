"""Every optimizer over ten steps of a small network, beside torch.optim; lion from its paper."""
import numpy
import torch
import torch.nn.functional as F

from emitted import Emitted

MODEL = """model net(batch B = 16)
input x : f32[B, 20]
input y : i32[B]
h = tanh(dense(x, 33))
train cross_entropy(dense(h, 7), y) using {} {{
  {}
}}
"""


class Lion(torch.optim.Optimizer):
    """Chen et al., 2023, algorithm 2."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(parameters, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = torch.sign(first * m + (1 - first) * p.grad)
                p.sub_(group["lr"] * (update + group["weight_decay"] * p))
                m.mul_(second).add_(p.grad, alpha=1 - second)


ROWS = [
    ("sgd(lr = 0.1)", "", lambda p: torch.optim.SGD(p, lr=0.1)),
    ("sgd(lr = 0.1, momentum = 0.9, weight_decay = 0.01)", "",
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01)),
    ("sgd(lr = 0.1, momentum = 0.9, nesterov = true)", "",
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    ("adam(lr = 0.01)", "", lambda p: torch.optim.Adam(p, lr=0.01)),
    ("adam(lr = 0.01, beta1 = 0.8, beta2 = 0.95, eps = 1e-6, weight_decay = 0.1)", "",
     lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    ("adamw(lr = 0.01, weight_decay = 0.1)", "",
     lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1)),
    ("adamw(lr = 0.01, weight_decay = 0.1)", "clip = 0.05",
     lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1)),
    ("rmsprop(lr = 0.01, alpha = 0.95, eps = 1e-6)", "",
     lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.95, eps=1e-6)),
    ("rmsprop(lr = 0.01, alpha = 0.9, eps = 1e-6, momentum = 0.9, weight_decay = 0.1)", "",
     lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-6, momentum=0.9,
                                   weight_decay=0.1)),
    ("adagrad(lr = 0.1, eps = 1e-8, weight_decay = 0.01)", "",
     lambda p: torch.optim.Adagrad(p, lr=0.1, eps=1e-8, weight_decay=0.01)),
    ("lion(lr = 0.01, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1)", "",
     lambda p: Lion(p, lr=0.01, weight_decay=0.1)),
]
NAMES = ("dense.0.w", "dense.0.b", "dense.1.w", "dense.1.b")


def ten_steps(make, clip, start, x, y, dtype):
    p = [torch.tensor(a, dtype=dtype, requires_grad=True) for a in start]
    optimizer = make(p)
    for i in range(10):
        optimizer.zero_grad()
        h = torch.tanh(torch.tensor(x[i], dtype=dtype) @ p[0] + p[1])
        F.cross_entropy(h @ p[2] + p[3], torch.tensor(y[i]).long()).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(p, clip)
        optimizer.step()
    return [a.detach().numpy() for a in p]


def check(gplan, table):
    random = numpy.random.default_rng(1)
    x = random.standard_normal((10, 16, 20)).astype("float32")
    y = random.integers(0, 7, (10, 16)).astype("int32")
    start = [(random.standard_normal(s) * 0.3).astype("float32")
             for s in ((20, 33), (33,), (33, 7), (7,))]
    for text, body, make in ROWS:
        model = Emitted(gplan, MODEL.format(text, body))
        for name, value in zip(NAMES, start):
            model[name][...] = value
        for i in range(10):
            model["x"][...], model["y"][...] = x[i], y[i]
            model.step()
        clip = float(body.split("=")[1]) if body else 0
        truth = ten_steps(make, clip, start, x, y, torch.float64)
        theirs = ten_steps(make, clip, start, x, y, torch.float32)
        moved = [change_of(model[name], s) for name, s in zip(NAMES, start)]
        worst = max(range(4), key=lambda k: table.error(moved[k], truth[k] - start[k]))
        table.row(text + (", " + body if body else ""), "change of " + NAMES[worst], moved[worst],
                  theirs[worst].astype("float64") - start[worst], truth[worst] - start[worst])


def change_of(now, start):
    """What ten steps changed: a parameter hides an error that its change shows."""
    return now.astype("float64") - start
