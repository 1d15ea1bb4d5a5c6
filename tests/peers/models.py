"""Whole models at their real sizes: torchvision's by their own modules, gpt2 and bert written out.

Each gets one set of weights and one batch. Compared are the outputs of the forward pass, as it
infers, and the loss, all gradients and the running statistics of one training step, without
dropout."""
import os
import re
import sys
import tempfile
import warnings

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

from decisions import decide
from emitted import THREADS, Emitted

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cpu"))
from peer_models import Gpt2  # noqa: E402


def text_of(example, sizes):
    """The example without dropout, trained so that the optimizer's state is the gradient."""
    with open(os.path.join(HERE, "..", "..", "examples", example + ".g")) as file:
        text = file.read()
    text = re.sub(r"(dropout\(.*), 0\.\d+\)", r"\1, 0)", text)
    text = re.sub(r"using .*", "using sgd(lr = 0, momentum = 0.9)", text.split(" {\n  clip")[0])
    for name, value in sizes.items():
        text = re.sub(rf"\b{name} = \d+", f"{name} = {value}", text, count=1)
    return text


# ---- Names: PyTorch's tensors in the order in which gplan makes its own --------------------------

def pairs_of(module):
    """(tensor, whether it is transposed) of a layer, parameters and running statistics."""
    if isinstance(module, nn.Linear):
        return [(module.weight, True), (module.bias, False)]
    own = [(p, False) for p in (module.weight, module.bias) if p is not None]
    if isinstance(module, nn.BatchNorm2d):
        own += [(module.running_mean, False), (module.running_var, False)]
    return own


def leaves(model):
    """Layers with parameters, in the order of the modules; a resnet's shortcuts come first."""
    found = []
    for child in model.children():
        inner = list(child.children())
        if hasattr(child, "downsample") and child.downsample is not None:
            found += leaves(child.downsample)
            rest = nn.ModuleList([c for n, c in child.named_children() if n != "downsample"])
            found += leaves(rest)
        elif inner:
            found += leaves(child)
        elif list(child.parameters()):
            found.append(child)
    return found


def vision_pairs(model):
    return [pair for module in leaves(model) for pair in pairs_of(module)]


def attention_pairs(qkv, out):
    size = qkv.weight.shape[1]
    for i in range(3):
        part = slice(i * size, (i + 1) * size)
        yield (qkv.weight, True, part)
        yield (qkv.bias, False, part)
    yield from pairs_of(out)


def gpt2_pairs(model):
    found = [(model.tokens.weight, False), (model.places.weight, False)]
    for layer in model.layers:
        found += [*pairs_of(layer.norm1), *attention_pairs(layer.qkv, layer.out),
                  *pairs_of(layer.norm2), *pairs_of(layer.up), *pairs_of(layer.down)]
    return found + pairs_of(model.norm)


class Bert(nn.Module):
    def __init__(self, size=768, depth=12, heads=12):
        super().__init__()
        self.words, self.positions = nn.Embedding(30522, size), nn.Embedding(512, size)
        self.kinds, self.norm = nn.Embedding(2, size), nn.LayerNorm(size, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(size, heads) for _ in range(depth))
        self.pool, self.head = nn.Linear(size, size), nn.Linear(size, 2)

    def forward(self, tokens, segments, seen):
        length = tokens.shape[1]
        h = self.norm(self.words(tokens) + self.positions.weight[:length] + self.kinds(segments))
        for layer in self.layers:
            h = layer(h, seen[:, None, None, :])
        return h, self.head(torch.tanh(self.pool(h[:, 0])))


class BertLayer(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.norm1 = nn.LayerNorm(size, eps=1e-12)
        self.norm2 = nn.LayerNorm(size, eps=1e-12)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) / (c // self.heads) ** 0.5
        a = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v
        x = self.norm1(x + self.out(a.transpose(1, 2).reshape(b, t, c)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


def bert_pairs(model):
    found = [(m.weight, False) for m in (model.words, model.positions, model.kinds)]
    found += pairs_of(model.norm)
    for layer in model.layers:
        found += [*attention_pairs(layer.qkv, layer.out), *pairs_of(layer.norm1),
                  *pairs_of(layer.up), *pairs_of(layer.down), *pairs_of(layer.norm2)]
    return found + pairs_of(model.pool) + pairs_of(model.head)


def array_of(tensor, transposed, part=None):
    tensor = tensor.detach()
    tensor = tensor if part is None else tensor[part]
    return (tensor.t() if transposed else tensor).numpy()


# ---- One model -----------------------------------------------------------------------------------

def run_torch(model, inputs, forward, loss_of, dtype):
    """Outputs as it infers, then the loss and the gradients of a training step."""
    model = model.to(dtype)
    inputs = {k: (v.to(dtype) if v.is_floating_point() else v) for k, v in inputs.items()}
    model.eval()
    with torch.no_grad():
        outputs = {k: v.numpy() for k, v in forward(model, inputs).items()}
    model.train()
    model.zero_grad()
    loss = loss_of(model, inputs)
    loss.backward()
    return outputs, loss.item()


def gradients_of(pairs):
    return [None if pair[0].grad is None else array_of(pair[0].grad, *pair[1:]).astype("float64")
            for pair in pairs]


def states_of(pairs):
    return [array_of(*pair).astype("float64").copy() for pair in pairs]


def condition(model, images):
    """Weights with which a wrong digit stays small: drawn at random, a network with statistics of
    few samples multiplies each rounding by thousands, and a comparison would show nothing. Residual
    branches begin small, no relu or maxpool is left to rounding, and the running statistics are
    those of the images."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.1)
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    for m in model.modules():
        last = getattr(m, "bn3", None)
        if getattr(m, "use_res_connect", False):
            last = m.conv[-1]
        if last is not None:
            last.weight.data *= 0.1
    kink, ties = decide(model, images)
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = None
            m.reset_running_stats()
    with torch.no_grad():
        model.train()(images)
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 0.1
    return f"relus are {kink:.0e} away from 0, {ties} channels with near ties"


def run_gplan(gplan, text, pairs, inputs):
    """The same weights and inputs by emitted C: names, outputs, loss, the model after a step."""
    ours = Emitted(gplan, text)
    names = [n for n in ours.of_kind("param", "state") if ".sgd" not in n]
    assert len(names) == len(pairs), (len(names), len(pairs))
    for key, pair in zip(names, pairs):
        value = array_of(*pair)
        assert ours[key].shape == value.shape, (key, ours[key].shape, value.shape)
        ours[key][...] = value
    for key, value in inputs.items():
        ours[key][...] = value.numpy()
    ours.forward()
    outputs = {k: ours[k].copy() for k in ours.of_kind("output")}
    return names, outputs, ours.step(), ours


def run_onnx(model, inputs, forward):
    """The outputs once more, by ONNX Runtime; none where it is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as missing:
        print(f"{missing.name} is not installed: not compared with ONNX Runtime")
        return {}

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model.eval()

        def forward(self, *values):
            return tuple(forward(self.inner, dict(zip(used, values))).values())

    used = [key for key in inputs if key not in ("labels", "next")]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        with torch.no_grad():
            names = list(forward(model.eval(), inputs))
        torch.onnx.export(Whole(), tuple(inputs[k] for k in used), file, input_names=used,
                          output_names=names, opset_version=17, dynamo=False)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(file, settings)
        return dict(zip(names, session.run(names, {k: inputs[k].numpy() for k in used})))


def check_model(gplan, table, name, text, model, pairs_of_model, inputs, forward, loss_of):
    begin = {k: v.clone() for k, v in model.state_dict().items()}
    names, mine, loss, ours = run_gplan(gplan, text, pairs_of_model(model), inputs)
    onnx = run_onnx(model, inputs, forward)
    results = {}
    for dtype in (torch.float32, torch.float64):
        model.to(torch.float32).load_state_dict(begin)
        outputs, value = run_torch(model, inputs, forward, loss_of, dtype)
        pairs = pairs_of_model(model)
        results[dtype] = outputs, value, gradients_of(pairs), states_of(pairs)
    single, truth = results[torch.float32], results[torch.float64]
    for key in truth[0]:
        table.row(name, key, mine[key], single[0][key], truth[0][key], onnx.get(key))
    table.row(name, "loss", loss, single[1], truth[1])
    gradients = []
    # A shift that a norm after it takes away has a gradient of 0: what is left of it is rounding.
    least = 1e-3 * max(abs(g).max() for g in truth[2] if g is not None)
    for kind, what in ((2, "gradients"), (3, "statistics")):
        rows = []
        for i, key in enumerate(names):
            if (truth[2][i] is None) == (kind == 3):
                got = ours.gradient(key) if kind == 2 else ours[key]
                floor = least if kind == 2 else 0
                rows.append((table.error(got, truth[kind][i], floor),
                             table.error(single[kind][i], truth[kind][i], floor), key))
        table.lines(name, what, rows)
        gradients = gradients or rows
    worst = [max(table.error(of[key], truth[0][key]) for key in of)
             for of in (mine, single[0], onnx) if of]
    return worst, [max(row[k] for row in gradients) for k in (0, 1)]


def check_vision(gplan, table, example, make, batch=2, size=224):
    torch.manual_seed(2)
    model = make()
    inputs = {"images": torch.rand(batch, 3, size, size),
              "labels": torch.randint(0, 1000, (batch,), dtype=torch.int32)}
    print(f"{example}: {condition(model, inputs['images'])}")

    def forward(m, x):
        logits = m(x["images"])
        return {"logits": logits, "probs": torch.softmax(logits, -1)}

    loss_of = lambda m, x: F.cross_entropy(m(x["images"]), x["labels"].long())
    text = text_of(example, {"B": batch, "S": size}) + "\noutput logits\n"
    return check_model(gplan, table, example, text, model, vision_pairs, inputs, forward,
                       loss_of)


def draw(model):
    """Weights as these models begin with, but no bias is 0 and no scale 1."""
    for p in model.parameters():
        nn.init.normal_(p, 0.0 if p.dim() > 1 else 1.0 * (p.mean().item() > 0.5), 0.02)


def check_gpt2(gplan, table, batch=1, length=256):
    torch.manual_seed(3)
    model = Gpt2(length)
    draw(model)
    inputs = {k: torch.randint(0, 50257, (batch, length), dtype=torch.int32)
              for k in ("tokens", "next")}
    forward = lambda m, x: {"logits": m(x["tokens"].long())}
    loss_of = lambda m, x: F.cross_entropy(m(x["tokens"].long()).view(-1, 50257),
                                           x["next"].long().view(-1))
    text = text_of("gpt2", {"B": batch, "T": length})
    return check_model(gplan, table, "gpt2", text, model, gpt2_pairs, inputs, forward, loss_of)


def check_bert(gplan, table, batch=2, length=128):
    torch.manual_seed(4)
    model = Bert()
    draw(model)
    seen = torch.arange(length)[None, :] < torch.tensor([length, length // 2])[:, None]
    inputs = {"tokens": torch.randint(0, 30522, (batch, length), dtype=torch.int32),
              "segments": torch.randint(0, 2, (batch, length), dtype=torch.int32),
              "seen": seen, "labels": torch.randint(0, 2, (batch,), dtype=torch.int32)}
    run = lambda m, x: m(x["tokens"].long(), x["segments"].long(), x["seen"])

    def forward(m, x):
        hidden, logits = run(m, x)
        return {"hidden": hidden, "logits": logits, "probs": torch.softmax(logits, -1)}

    loss_of = lambda m, x: F.cross_entropy(run(m, x)[1], x["labels"].long())
    text = text_of("bert", {"B": batch, "T": length}) + "\noutput logits\n"
    return check_model(gplan, table, "bert", text, model, bert_pairs, inputs, forward, loss_of)


VISION = {"resnet50": "resnet50", "mobilenetv2": "mobilenet_v2", "vgg16": "vgg16",
          "densenet121": "densenet121"}
OTHERS = {"gpt2": check_gpt2, "bert": check_bert}


def check(gplan, table, examples=(*VISION, *OTHERS)):
    summary = []
    for example in examples:
        if example in OTHERS:
            summary.append((example, *OTHERS[example](gplan, table)))
            continue
        try:
            from torchvision import models
        except ImportError:
            print(f"{example}: torchvision is not installed: not compared")
            continue
        # where there are no batch statistics, one image shows as much
        summary.append((example, *check_vision(gplan, table, example,
                                               getattr(models, VISION[example]),
                                               1 if example == "vgg16" else 2)))
    print(f"\n{'the largest errors':16} {'outputs: gplan':>16} {'PyTorch':>9} {'ONNX':>9} "
          f"{'gradients: gplan':>18} {'PyTorch':>9}")
    for example, outputs, gradients in summary:
        mine, single, onnx = (*(f"{e:.1e}" for e in outputs), "-")[:3]
        print(f"{example:18} {mine:>16} {single:>9} {onnx:>9} {gradients[0]:18.1e} "
              f"{gradients[1]:9.1e}")
