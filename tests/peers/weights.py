"""Weights of other tools: files with the names and layouts of torchvision and of Hugging Face, through
`gplan weights` into the examples, whose outputs are PyTorch's own.

torchvision's models are its own classes. Those of Hugging Face are written out here: modules whose
state_dict has the names, shapes and buffers of GPT2LMHeadModel and BertForSequenceClassification."""
import ctypes
import os
import subprocess
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from emitted import Emitted
from models import VISION, condition, draw, text_of

MAPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "weights")


# ---- Hugging Face's gpt2 -------------------------------------------------------------------------

class Conv1D(nn.Module):
    """A dense layer whose weight is [inputs, outputs]."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2Attention(nn.Module):
    def __init__(self, size, heads, length):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Conv1D(3 * size, size), Conv1D(size, size)
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool))
        self.register_buffer("bias", mask.view(1, 1, length, length))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for p in self.c_attn(x).split(c, -1))
        scores = q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5
        scores = scores.masked_fill(~self.bias[:, :, :t, :t], float("-inf"))
        return self.c_proj((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, c))


class Gpt2Mlp(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(4 * size, size), Conv1D(size, 4 * size)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Gpt2Block(nn.Module):
    def __init__(self, size, heads, length):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(size), Gpt2Attention(size, heads, length)
        self.ln_2, self.mlp = nn.LayerNorm(size), Gpt2Mlp(size)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2LMHeadModel(nn.Module):
    def __init__(self, length=1024, size=768, depth=12, heads=12, words=50257):
        super().__init__()
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(words, size)
        self.transformer.wpe = nn.Embedding(length, size)
        self.transformer.h = nn.ModuleList(Gpt2Block(size, heads, length) for _ in range(depth))
        self.transformer.ln_f = nn.LayerNorm(size)
        self.lm_head = nn.Linear(size, words, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        inner = self.transformer
        h = inner.wte(tokens) + inner.wpe.weight[:tokens.shape[1]]
        for block in inner.h:
            h = block(h)
        return self.lm_head(inner.ln_f(h))


# ---- Hugging Face's bert -------------------------------------------------------------------------

def module(**children):
    made = nn.Module()
    for name, child in children.items():
        made.add_module(name, child)
    return made


class BertForSequenceClassification(nn.Module):
    def __init__(self, size=768, depth=12, heads=12, kinds=2):
        super().__init__()
        self.heads = heads
        norm = lambda: nn.LayerNorm(size, eps=1e-12)
        same = lambda: nn.Linear(size, size)
        layer = lambda: module(
            attention=module(self=module(query=same(), key=same(), value=same()),
                             output=module(dense=same(), LayerNorm=norm())),
            intermediate=module(dense=nn.Linear(size, 4 * size)),
            output=module(dense=nn.Linear(4 * size, size), LayerNorm=norm()))
        self.bert = module(
            embeddings=module(word_embeddings=nn.Embedding(30522, size),
                              position_embeddings=nn.Embedding(512, size),
                              token_type_embeddings=nn.Embedding(2, size), LayerNorm=norm()),
            encoder=module(layer=nn.ModuleList(layer() for _ in range(depth))),
            pooler=module(dense=same()))
        self.bert.embeddings.register_buffer("position_ids", torch.arange(512)[None])
        self.classifier = nn.Linear(size, kinds)

    def attend(self, inner, x, seen):
        b, t, c = x.shape
        q, k, v = (getattr(inner, name)(x).view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for name in ("query", "key", "value"))
        scores = q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5
        scores = scores.masked_fill(~seen[:, None, None, :], float("-inf"))
        return (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, c)

    def forward(self, tokens, segments, seen):
        e = self.bert.embeddings
        h = e.LayerNorm(e.word_embeddings(tokens) + e.token_type_embeddings(segments) +
                        e.position_embeddings(e.position_ids[:, :tokens.shape[1]]))
        for layer in self.bert.encoder.layer:
            inner, out = layer.attention.output, layer.output
            h = inner.LayerNorm(h + inner.dense(self.attend(layer.attention.self, h, seen)))
            h = out.LayerNorm(h + out.dense(F.gelu(layer.intermediate.dense(h))))
        return h, self.classifier(torch.tanh(self.bert.pooler.dense(h[:, 0])))


# ---- Through gplan -------------------------------------------------------------------------------

def run_gplan(gplan, text, state, inputs, options):
    """Outputs of the example with the weights of the state, which went through files."""
    from safetensors.torch import save_file
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        # a tensor of two names is stored once, as Hugging Face does
        seen, once = set(), {}
        for key, value in state.items():
            if value.data_ptr() not in seen:
                once[key] = value.contiguous()
            seen.add(value.data_ptr())
        save_file(once, path("in.safetensors"))
        with open(path("model.g"), "w") as file:
            file.write(text)
        subprocess.run([gplan, "weights", path("in.safetensors"), path("model.g"), "-o",
                        path("out.safetensors"), *options], check=True)
        ours = Emitted(gplan, text, ["--infer"])
        ours.call("load", ctypes.c_char_p(path("out.safetensors").encode()))
    for key, value in inputs.items():
        ours[key][...] = value.numpy()
    ours.forward()
    return {key: ours[key].copy() for key in ours.of_kind("output")}


def check_model(gplan, table, name, text, model, inputs, forward, options=()):
    model.eval()
    mine = run_gplan(gplan, text, model.state_dict(), inputs, options)
    with torch.no_grad():
        single = forward(model, inputs)
        model = model.double()
        truth = forward(model, {k: v.double() if v.is_floating_point() else v
                                for k, v in inputs.items()})
    for key in truth:
        table.row(name, key, mine[key], single[key].numpy(), truth[key].numpy())


def forward_text(example, sizes, output=""):
    """The example without its training step and its dropout."""
    return text_of(example, sizes).split("\ntrain ")[0] + output


def check_vision(gplan, table, example, make, size=224):
    torch.manual_seed(2)
    model = make()
    images = torch.rand(2, 3, size, size)
    condition(model, images)
    text = forward_text(example, {"B": 2, "S": size}, "\noutput logits\n")
    text = "\n".join(line for line in text.split("\n") if not line.startswith("input labels"))
    check_model(gplan, table, example, text, model, {"images": images},
                lambda m, x: {"logits": m(x["images"])})


def check_gpt2(gplan, table, batch=1, length=64):
    torch.manual_seed(3)
    model = Gpt2LMHeadModel()
    draw(model)
    tokens = torch.randint(0, 50257, (batch, length), dtype=torch.int32)
    text = forward_text("gpt2", {"B": batch, "T": length}).replace("input next   : i32[B, T]\n", "")
    check_model(gplan, table, "gpt2, Hugging Face", text, model, {"tokens": tokens},
                lambda m, x: {"logits": m(x["tokens"].long())},
                ["--map", os.path.join(MAPS, "gpt2_hf.map")])


def check_bert(gplan, table, batch=2, length=64):
    torch.manual_seed(4)
    model = BertForSequenceClassification()
    draw(model)
    seen = torch.arange(length)[None, :] < torch.tensor([length, length // 2])[:, None]
    inputs = {"tokens": torch.randint(0, 30522, (batch, length), dtype=torch.int32),
              "segments": torch.randint(0, 2, (batch, length), dtype=torch.int32), "seen": seen}

    def forward(m, x):
        hidden, logits = m(x["tokens"].long(), x["segments"].long(), x["seen"])
        return {"hidden": hidden, "logits": logits}

    text = forward_text("bert", {"B": batch, "T": length}, "\noutput logits\n")
    check_model(gplan, table, "bert, Hugging Face", text.replace("input labels   : i32[B]\n", ""),
                model, inputs, forward, ["--map", os.path.join(MAPS, "bert_hf.map")])


def check(gplan, table):
    try:
        import safetensors  # noqa: F401
        from torchvision import models
    except ImportError as missing:
        print(f"{missing.name} is not installed: weights of other tools are not compared")
        return
    for example, name in VISION.items():
        check_vision(gplan, table, example, getattr(models, name))
    check_gpt2(gplan, table)
    check_bert(gplan, table)
