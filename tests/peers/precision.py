"""Ten steps of a small gpt2 in bf16, from the same weights on the same batch, beside PyTorch's autocast.

Each is compared with its own f32: the largest difference of a loss, and how far the parameters are
apart after ten steps, as a share of the way they went. gplan's is at most half as large again as
autocast's."""
import copy

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

from emitted import Emitted
from models import Gpt2, array_of, draw, gpt2_pairs, text_of
from peer_models import Layer

STEPS, RATE, SLACK = 10, 0.05, 1.5
LENGTH, SIZE, DEPTH, HEADS, WORDS = 64, 192, 3, 6, 1000


class Small(Gpt2):
    def __init__(self):
        nn.Module.__init__(self)
        self.tokens, self.places = nn.Embedding(WORDS, SIZE), nn.Embedding(LENGTH, SIZE)
        self.layers = nn.Sequential(*[Layer(SIZE, HEADS) for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(SIZE)


def torch_run(model, tokens, following, autocast):
    model = copy.deepcopy(model)
    sgd = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            logits = model(tokens.long())
            loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), following.long().view(-1))
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses, [array_of(*pair).astype("float64") for pair in gpt2_pairs(model)]


def gplan_run(gplan, text, model, tokens, following, precision):
    ours = Emitted(gplan, text, ("--precision", precision))
    names = ours.of_kind("param")
    for key, pair in zip(names, gpt2_pairs(model), strict=True):
        ours[key][...] = array_of(*pair)
    ours["tokens"][...], ours["next"][...] = tokens.numpy(), following.numpy()
    losses = [ours.step() for _ in range(STEPS)]
    return losses, [ours[key].astype("float64") for key in names]


def apart(a, b):
    return sum(((x - y) ** 2).sum() for x, y in zip(a, b, strict=True)) ** 0.5


def check(gplan, table):
    torch.manual_seed(5)
    model = Small()
    draw(model)
    tokens, following = (torch.randint(0, WORDS, (4, LENGTH), dtype=torch.int32)
                         for _ in range(2))
    text = text_of("gpt2", {"B": 4, "T": LENGTH, "C": SIZE, "L": DEPTH, "H": HEADS, "V": WORDS}).replace(
        "sgd(lr = 0, momentum = 0.9)", f"sgd(lr = {RATE})")
    begin = [array_of(*pair).astype("float64") for pair in gpt2_pairs(model)]
    share, loss = {}, {}
    for name, wide, narrow in (
            ("PyTorch", torch_run(model, tokens, following, False),
             torch_run(model, tokens, following, True)),
            ("gplan", gplan_run(gplan, text, model, tokens, following, "f32"),
             gplan_run(gplan, text, model, tokens, following, "bf16"))):
        loss[name] = max(abs(a - b) / a for a, b in zip(wide[0], narrow[0], strict=True))
        share[name] = apart(wide[1], narrow[1]) / apart(wide[1], begin)
        print(f"{name}: {STEPS} steps in bf16 beside its own f32: losses differ by "
              f"{loss[name]:.1e}, parameters by {share[name]:.1e} of their way; losses "
              f"{numpy.round(narrow[0], 3).tolist()}")
    for what, of in (("losses", loss), ("parameters", share)):
        if not of["gplan"] <= SLACK * of["PyTorch"]:
            print(f"gpt2 in bf16: {what}  WRONG")
            table.wrong += 1
