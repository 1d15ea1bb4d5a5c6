"""Networks exported by torch.onnx, with random weights: networks.py FOLDER EXPORTER NAME

EXPORTER is torchscript or dynamo. Writes FOLDER/NAME_EXPORTER/model.onnx.
"""
import math
import os
import sys
import warnings

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

VOCABULARY = 1000


class Attention(nn.Module):
    """Written out, as exporters that know no fused attention leave it."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask=None, rotary=None):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        if rotary is not None:
            q, k = rotate(q, *rotary), rotate(k, *rotary)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            length = x.shape[1]
            scores = scores + torch.full((length, length), -1e9).triu(1)
        if mask is not None:
            scores = scores + mask
        y = torch.softmax(scores, -1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


def rotate(x, cos, sin):
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads, False)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, width=256, heads=4, layers=4, length=128):
        super().__init__()
        self.word = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(length, width)
        self.kind = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layer = nn.ModuleList(BertLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids, attention_mask, token_type_ids):
        place = torch.arange(input_ids.shape[1]).unsqueeze(0)
        x = self.norm(self.word(input_ids) + self.position(place) + self.kind(token_type_ids))
        mask = (1.0 - attention_mask[:, None, None, :].float()) * -1e4
        for layer in self.layer:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt2Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads, True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, width=256, heads=4, layers=4, length=128):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(Gpt2Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, input_ids):
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        for layer in self.h:
            x = layer(x)
        return self.norm(x) @ self.wte.weight.t()


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads, True)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x, rotary):
        x = x + self.attention(self.norm1(x), rotary=rotary)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, width=256, heads=4, layers=4):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layer = nn.ModuleList(LlamaLayer(width, heads) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        size = width // heads
        self.register_buffer("frequency", 1e4 ** (-torch.arange(0, size, 2).float() / size))

    def forward(self, input_ids):
        angle = torch.arange(input_ids.shape[1])[:, None] * self.frequency
        angle = torch.cat((angle, angle), -1)
        rotary = (angle.cos(), angle.sin())
        x = self.embed(input_ids)
        for layer in self.layer:
            x = layer(x, rotary)
        return self.head(self.norm(x))


def vision(make, **settings):
    return lambda: (make(weights=None, **settings), (torch.randn(1, 3, 224, 224),), ["image"])


def text(make, inputs=("input_ids",)):
    def build():
        ids = [torch.randint(0, 2, (2, 64)) for _ in inputs]
        ids[0] = torch.randint(0, VOCABULARY, (2, 64))
        return make(), tuple(ids), list(inputs)

    return build


models = torchvision.models
NETWORKS = {
    "resnet50": vision(models.resnet50),
    "mobilenet_v3_small": vision(models.mobilenet_v3_small),
    "efficientnet_b0": vision(models.efficientnet_b0),
    "vit_b_16": vision(models.vit_b_16),
    "swin_t": vision(models.swin_t),
    "convnext_tiny": vision(models.convnext_tiny),
    "deeplabv3_resnet50": vision(models.segmentation.deeplabv3_resnet50, weights_backbone=None),
    "bert": text(Bert, ("input_ids", "attention_mask", "token_type_ids")),
    "gpt2": text(Gpt2),
    "llama": text(Llama),
}


def randomise(model):
    """Statistics and scales as a trained model has them: no layer is the identity."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
        if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)) and module.weight is not None:
            nn.init.uniform_(module.weight, 0.7, 1.3)
            nn.init.normal_(module.bias, std=0.1)
        if isinstance(module, nn.Linear) and not module.weight.any():  # ViT's head begins at 0
            nn.init.normal_(module.weight, std=0.02)
        if type(module).__name__ == "CNBlock":  # ConvNeXt's layer scale begins at 1e-6
            nn.init.uniform_(module.layer_scale, 0.1, 0.3)
    return model


def export(folder, exporter, name):
    torch.manual_seed(1)
    model, args, inputs = NETWORKS[name]()
    folder = os.path.join(folder, f"{name}_{exporter}")
    os.makedirs(folder + ".part", exist_ok=True)
    path = os.path.join(folder + ".part", "model.onnx")
    settings = {"dynamo": exporter == "dynamo", "input_names": inputs}
    if exporter == "torchscript":
        settings["dynamic_axes"] = {inputs[0]: {0: "batch"}} if len(inputs) == 1 else None
        settings["opset_version"] = 17
    with torch.no_grad():
        torch.onnx.export(randomise(model).eval(), args, path, **settings)
    os.rename(folder + ".part", folder)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.backends.mha.set_fastpath_enabled(False)  # an op that ONNX does not have
    export(*sys.argv[1:4])
