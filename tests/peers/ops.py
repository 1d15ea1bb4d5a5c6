"""Every op that PyTorch has too, at a small and at a real size: its result and all its gradients.

All ops of a size stand in one model, each on parameters of its own, so that it is compiled once. The
loss is the sum of all results, each times numbers drawn at random; sgd's momentum is the gradient."""
import re

import numpy
import torch
import torch.nn.functional as F

from emitted import Emitted


class Case:
    """text: the op in gplan's language. Operands are shapes, small then real; ids are i32 in a
    small and a real shape, of places along that axis of the first operand. draw: from a normal distribution, or uniform between two numbers."""

    def __init__(self, text, like, small, real=None, ids=None, draw=None, smooth=True):
        self.text, self.like, self.sizes = text, like, (small, real or small)
        self.ids, self.draw, self.smooth = ids or {}, draw, smooth


def unary(name, like, draw=None, **more):
    return Case(name, like, {"x": (3, 37)}, {"x": (64, 3072)}, draw=draw, **more)


def binary(name, like, draw=None):
    return Case(name, like, {"x": (5, 1, 7), "y": (3, 1)}, {"x": (8, 128, 768), "y": (768,)},
                draw=draw)


def reduction(text, like, draw=None, smooth=True):
    return Case(text, like, {"x": (3, 4, 5)}, {"x": (16, 128, 1024)}, draw=draw, smooth=smooth)


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def attention(heads):
    def like(x, wq, bq, wk, bk, wv, bv, wo, bo):
        a = F.scaled_dot_product_attention(*(heads_of(x @ w + b, heads) for w, b in
                                             ((wq, bq), (wk, bk), (wv, bv))), is_causal=True)
        return a.transpose(1, 2).reshape(x.shape) @ wo + bo
    return like


def projections(batch, length, size):
    return {"x": (batch, length, size), **{n + k: (size, size) if n == "w" else (size,)
                                           for k in "qkvo" for n in "wb"}}


def rope(x):
    t, d = x.shape[-2:]
    angle = torch.arange(t, dtype=x.dtype)[:, None] * 10000.0 ** (
        -torch.arange(d // 2, dtype=x.dtype) * 2 / d)
    a, b = x[..., :d // 2], x[..., d // 2:]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def conv(text, like, small, real):
    return Case(text, like, small, real)


def image(n, c, h, w, o, k, groups=1):
    return {"x": (n, c, h, w), "w": (o, c // groups, k, k), "b": (o,)}


POSITIVE, SHARE = (0.1, 3.0), (0.02, 0.98)
CASES = [
    unary("abs(x)", torch.abs), unary("neg(x)", torch.neg), unary("exp(x)", torch.exp),
    unary("log(x)", torch.log, POSITIVE), unary("sqrt(x)", torch.sqrt, POSITIVE),
    unary("rsqrt(x)", torch.rsqrt, POSITIVE), unary("reciprocal(x)", torch.reciprocal, POSITIVE),
    unary("square(x)", torch.square), unary("sin(x)", torch.sin), unary("cos(x)", torch.cos),
    unary("tan(x)", torch.tan, (-1.4, 1.4)), unary("asin(x)", torch.asin, (-0.98, 0.98)),
    unary("acos(x)", torch.acos, (-0.98, 0.98)), unary("atan(x)", torch.atan),
    unary("sinh(x)", torch.sinh), unary("cosh(x)", torch.cosh), unary("asinh(x)", torch.asinh),
    unary("acosh(x)", torch.acosh, (1.02, 9.0)), unary("atanh(x)", torch.atanh, (-0.98, 0.98)),
    unary("trunc(x)", torch.trunc),
    unary("erf(x)", torch.erf), unary("tanh(x)", torch.tanh), unary("sigmoid(x)", torch.sigmoid),
    unary("sign(x)", torch.sign), unary("floor(x)", torch.floor), unary("ceil(x)", torch.ceil),
    unary("round(x)", torch.round), unary("relu(x)", F.relu), unary("silu(x)", F.silu),
    unary("gelu(x)", F.gelu), unary("gelu(x, form = tanh)", lambda x: F.gelu(x, approximate="tanh")),
    unary("elu(x, alpha = 0.7)", lambda x: F.elu(x, 0.7)),
    unary("celu(x, alpha = 0.7)", lambda x: F.celu(x, 0.7)), unary("selu(x)", F.selu),
    unary("leaky_relu(x, slope = 0.2)", lambda x: F.leaky_relu(x, 0.2)),
    unary("softplus(x)", F.softplus), unary("softsign(x)", F.softsign), unary("mish(x)", F.mish),
    unary("hardsigmoid(x)", F.hardsigmoid), unary("hardswish(x)", F.hardswish),
    unary("clip(x, -0.5, 0.8)", lambda x: x.clamp(-0.5, 0.8)),
    Case("prelu(x, slope = s)", F.prelu, {"x": (2, 3, 4), "s": (3,)},
         {"x": (8, 256, 28, 28), "s": (256,)}),
    binary("x + y", torch.add), binary("x - y", torch.sub), binary("x * y", torch.mul),
    binary("x / y", torch.div, POSITIVE), binary("pow(x, y)", torch.pow, POSITIVE),
    binary("mod(x, y)", torch.remainder, POSITIVE), binary("fmod(x, y)", torch.fmod, POSITIVE),
    binary("maximum(x, y)", torch.maximum), binary("minimum(x, y)", torch.minimum),
    binary("where(less(x, y), x, y * 2.0)", lambda x, y: torch.where(x < y, x, y * 2)),
    reduction("sum(x)", torch.sum), reduction("sum(x, axis = 1)", lambda x: x.sum(1)),
    reduction("sum(x, axis = [0, 2], keepdims = true)", lambda x: x.sum((0, 2), True)),
    reduction("mean(x, axis = -1)", lambda x: x.mean(-1)), reduction("mean(x)", torch.mean),
    reduction("var(x, axis = -1, correction = 1)", lambda x: x.var(-1)),
    reduction("var(x, axis = [0, 1])", lambda x: x.var((0, 1), correction=0)),
    reduction("max(x, axis = 1)", lambda x: x.amax(1)), reduction("min(x)", torch.amin),
    reduction("argmax(x, axis = 1)", lambda x: x.argmax(1), smooth=False),
    reduction("argmin(x, axis = -1)", lambda x: x.argmin(-1), smooth=False),
    Case("prod(x, axis = 1)", lambda x: x.prod(1), {"x": (3, 4, 5)}, {"x": (16, 24, 512)},
         draw=(0.7, 1.3)),
    reduction("cumsum(x, axis = 1)", lambda x: x.cumsum(1)),
    Case("gather_elements(x, index, axis = 1)", lambda x, i: x.gather(1, i.long()),
         {"x": (3, 4)}, {"x": (64, 512)}, ids={"index": ((3, 6), (64, 300), 1)}),
    Case("scatter(x, index, u, axis = 1, reduction = add)",
         lambda x, u, i: x.scatter_add(1, i.long(), u), {"x": (3, 4), "u": (3, 6)},
         {"x": (64, 512), "u": (64, 300)}, ids={"index": ((3, 6), (64, 300), 1)}),
    Case("scatter(x, index, u, axis = 1, reduction = max)",
         lambda x, u, i: x.scatter_reduce(1, i.long(), u, "amax"), {"x": (3, 4), "u": (3, 6)},
         {"x": (64, 512), "u": (64, 300)}, ids={"index": ((3, 6), (64, 300), 1)}),
    reduction("softmax(x)", lambda x: x.softmax(-1)),
    reduction("softmax(x, axis = 1)", lambda x: x.softmax(1)),
    Case("log_softmax(x)", lambda x: x.log_softmax(-1), {"x": (3, 11)}, {"x": (64, 50257)}),
    Case("a @ b", torch.matmul, {"a": (5, 7), "b": (7, 3)}, {"a": (512, 768), "b": (768, 3072)}),
    Case("a @ transpose(b)", lambda a, b: a @ b.T, {"a": (5, 7), "b": (3, 7)},
         {"a": (64, 768), "b": (50257, 768)}),
    Case("a @ b", torch.matmul, {"a": (2, 1, 5, 7), "b": (3, 7, 4)},
         {"a": (8, 12, 128, 64), "b": (8, 12, 64, 128)}),
    Case("transpose(a) @ b", lambda a, b: a.T @ b, {"a": (7, 5), "b": (7,)},
         {"a": (2048, 1000), "b": (2048,)}),
    Case("dense(x, w = w, b = b)", lambda x, w, b: x @ w + b, {"x": (4, 9), "w": (9, 5), "b": (5,)},
         {"x": (8, 25088), "w": (25088, 512), "b": (512,)}),
    conv("conv2d(x, w = w, b = b, pad = 1)", lambda x, w, b: F.conv2d(x, w, b, 1, 1),
         image(2, 3, 6, 7, 4, 3), image(2, 256, 28, 28, 256, 3)),
    conv("conv2d(x, w = w, b = b, pad = 1)", lambda x, w, b: F.conv2d(x, w, b, 1, 1),
         image(1, 17, 5, 5, 9, 3), image(2, 512, 7, 7, 512, 3)),
    conv("conv2d(x, w = w, b = b)", F.conv2d, image(2, 3, 6, 7, 4, 1), image(2, 512, 14, 14, 64, 1)),
    conv("conv2d(x, w = w, b = b)", F.conv2d, image(1, 5, 3, 3, 9, 1),
         image(2, 512, 7, 7, 2048, 1)),
    conv("conv2d(x, w = w, b = b, stride = 2)", lambda x, w, b: F.conv2d(x, w, b, 2),
         image(2, 3, 6, 7, 4, 1), image(2, 1024, 14, 14, 512, 1)),
    conv("conv2d(x, w = w, b = b, stride = 2, pad = 3)", lambda x, w, b: F.conv2d(x, w, b, 2, 3),
         image(1, 3, 9, 10, 4, 7), image(2, 3, 224, 224, 64, 7)),
    conv("conv2d(x, w = w, b = b, stride = 2, pad = 1)", lambda x, w, b: F.conv2d(x, w, b, 2, 1),
         image(2, 3, 6, 7, 4, 3), image(2, 256, 28, 28, 256, 3)),
    conv("conv2d(x, w = w, b = b, pad = 2, dilation = 2)",
         lambda x, w, b: F.conv2d(x, w, b, 1, 2, 2), image(2, 3, 6, 7, 4, 3),
         image(2, 128, 28, 28, 128, 3)),
    conv("conv2d(x, w = w, b = b, pad = 1, groups = 4)",
         lambda x, w, b: F.conv2d(x, w, b, 1, 1, 1, 4), image(2, 8, 6, 7, 12, 3, 4),
         image(2, 1280, 14, 14, 320, 3, 4)),
    conv("conv2d(x, w = w, b = b, groups = 2)", lambda x, w, b: F.conv2d(x, w, b, groups=2),
         image(2, 8, 6, 7, 12, 1, 2), image(2, 640, 14, 14, 640, 1, 2)),
    Case("conv2d(x, w = w, b = b, pad = 1, groups = 6)",
         lambda x, w, b: F.conv2d(x, w, b, 1, 1, 1, 6), image(2, 6, 6, 7, 6, 3, 6)),
    Case("conv2d(x, w = w, b = b, stride = 2, pad = 1, groups = 960)",
         lambda x, w, b: F.conv2d(x, w, b, 2, 1, 1, 960), image(1, 960, 7, 7, 960, 3, 960),
         image(2, 960, 14, 14, 960, 3, 960)),
    Case("conv1d(x, w = w, b = b, pad = 1)", lambda x, w, b: F.conv1d(x, w, b, 1, 1),
         {"x": (2, 3, 9), "w": (4, 3, 3), "b": (4,)}, {"x": (2, 512, 300), "w": (384, 512, 3), "b": (384,)}),
    Case("conv1d(x, w = w, b = b)", F.conv1d, {"x": (2, 3, 9), "w": (4, 3, 1), "b": (4,)},
         {"x": (2, 512, 300), "w": (384, 512, 1), "b": (384,)}),
    Case("conv_transpose2d(x, w = w, b = b, stride = 2)",
         lambda x, w, b: F.conv_transpose2d(x, w, b, 2),
         {"x": (2, 3, 4, 5), "w": (3, 4, 2, 2), "b": (4,)},
         {"x": (1, 1024, 14, 14), "w": (1024, 512, 2, 2), "b": (512,)}),
    Case("conv_transpose2d(x, w = w, b = b, stride = 2, pad = 1, output_pad = 1)",
         lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1),
         {"x": (2, 3, 4, 5), "w": (3, 4, 3, 3), "b": (4,)},
         {"x": (2, 300, 28, 28), "w": (300, 40, 3, 3), "b": (40,)}),
    Case("maxpool2d(x, 2)", lambda x: F.max_pool2d(x, 2), {"x": (2, 3, 6, 8)}, {"x": (2, 128, 56, 56)}),
    Case("maxpool2d(x, 3, stride = 2, pad = 1)", lambda x: F.max_pool2d(x, 3, 2, 1),
         {"x": (2, 3, 7, 9)}, {"x": (2, 64, 112, 112)}),
    Case("maxpool2d(x, [3, 2], stride = [1, 2], pad = 1, dilation = [2, 3], ceil = true)",
         lambda x: F.max_pool2d(x, (3, 2), (1, 2), 1, (2, 3), True), {"x": (2, 3, 9, 8)},
         {"x": (2, 64, 56, 57)}),
    Case("maxpool2d_indices(x, 3, stride = 2, pad = 1, ceil = true)",
         lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)[1],
         {"x": (2, 3, 7, 10)}, {"x": (2, 64, 111, 112)}, smooth=False),
    Case("avgpool2d(x, 3, stride = 2, pad = 1)",
         lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), {"x": (2, 3, 7, 9)},
         {"x": (2, 192, 28, 28)}),
    Case("avgpool2d(x, 2, count_include_pad = true)", lambda x: F.avg_pool2d(x, 2),
         {"x": (2, 3, 6, 8)}, {"x": (2, 256, 56, 56)}),
    Case("global_avgpool(x)", lambda x: x.mean((2, 3)), {"x": (2, 3, 6, 8)}, {"x": (8, 2048, 7, 7)}),
    Case("global_maxpool(x)", lambda x: x.amax((2, 3)), {"x": (2, 3, 6, 8)}, {"x": (8, 2048, 7, 7)}),
    Case("conv3d(x, w = w, b = b, pad = 1)", lambda x, w, b: F.conv3d(x, w, b, 1, 1),
         {"x": (2, 3, 4, 5, 6), "w": (4, 3, 3, 3, 3), "b": (4,)},
         {"x": (2, 32, 16, 32, 32), "w": (64, 32, 3, 3, 3), "b": (64,)}),
    Case("conv3d(x, w = w, b = b, stride = [2, 1, 2], pad = 2, dilation = [2, 1, 1], groups = 2)",
         lambda x, w, b: F.conv3d(x, w, b, (2, 1, 2), 2, (2, 1, 1), 2),
         {"x": (2, 4, 5, 5, 6), "w": (6, 2, 3, 3, 3), "b": (6,)},
         {"x": (1, 16, 9, 28, 28), "w": (32, 8, 3, 3, 3), "b": (32,)}),
    Case("conv_transpose3d(x, w = w, b = b, stride = 2)",
         lambda x, w, b: F.conv_transpose3d(x, w, b, 2),
         {"x": (2, 3, 2, 4, 5), "w": (3, 4, 2, 2, 2), "b": (4,)},
         {"x": (1, 64, 8, 16, 16), "w": (64, 32, 2, 2, 2), "b": (32,)}),
    Case("conv_transpose3d(x, w = w, b = b, stride = 2, pad = 1, output_pad = 1)",
         lambda x, w, b: F.conv_transpose3d(x, w, b, 2, 1, 1),
         {"x": (2, 3, 2, 4, 5), "w": (3, 4, 3, 3, 3), "b": (4,)},
         {"x": (1, 32, 6, 14, 14), "w": (32, 16, 3, 3, 3), "b": (16,)}),
    Case("maxpool3d(x, 3, stride = 2, pad = 1)", lambda x: F.max_pool3d(x, 3, 2, 1),
         {"x": (2, 3, 5, 7, 9)}, {"x": (1, 32, 16, 56, 56)}),
    Case("avgpool3d(x, 3, stride = 2, pad = 1, ceil = true)",
         lambda x: F.avg_pool3d(x, 3, 2, 1, True, False), {"x": (2, 3, 5, 7, 10)},
         {"x": (1, 32, 16, 56, 55)}),
    Case("avgpool3d(x, 3, stride = 2, pad = 1, ceil = true, count_include_pad = true)",
         lambda x: F.avg_pool3d(x, 3, 2, 1, True), {"x": (2, 3, 5, 8, 10)},
         {"x": (1, 32, 16, 56, 55)}),
    *(Case(f"grid_sample(x, y, mode = {mode}, padding = {padding}, align_corners = {corners})",
           lambda x, y, mode=mode, padding=padding, corners=corners: F.grid_sample(
               x, y, mode, padding, corners == "true"),
           {"x": (2, 3, 5, 6), "y": (2, 4, 7, 2)}, {"x": (2, 32, 32, 33), "y": (2, 40, 41, 2)},
           draw=(-1.6, 1.6)) for mode in ("bilinear", "nearest", "bicubic")
      for padding, corners in (("zeros", "false"), ("border", "true"), ("reflection", "false"),
                               ("reflection", "true"))),
    *(Case(f"grid_sample(x, y, mode = {mode})",
           lambda x, y, mode=mode: F.grid_sample(x, y, mode, align_corners=False),
           {"x": (2, 3, 4, 5, 6), "y": (2, 2, 4, 3, 3)},
           {"x": (1, 16, 10, 17, 18), "y": (1, 9, 20, 12, 3)}, draw=(-1.6, 1.6))
      for mode in ("bilinear", "nearest")),
    Case("upsample2d(x, scale = 2)", lambda x: F.interpolate(x, scale_factor=2),
         {"x": (2, 3, 4, 5)}, {"x": (2, 128, 28, 28)}),
    Case("upsample2d(x, scale = 2, mode = bilinear)",
         lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), {"x": (2, 3, 4, 5)},
         {"x": (2, 128, 28, 28)}),
    Case("upsample2d(x, scale = 2, mode = bilinear, align_corners = true)",
         lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
         {"x": (2, 3, 4, 5)}, {"x": (2, 128, 28, 28)}),
    *(Case(f"resize(x, {gplan})", lambda x, how=how: F.interpolate(x, **how), {"x": (2, 3, 5, 6)},
           {"x": (2, 32, 28, 30)}) for gplan, how in (
        ("scale = 1.7, coordinates = asymmetric, round = floor", {"scale_factor": 1.7}),
        ("scale = 0.7, round = round_prefer_ceil", {"scale_factor": 0.7, "mode": "nearest-exact"}),
        ("scale = 1.7, mode = linear", {"scale_factor": 1.7, "mode": "bilinear"}),
        ("scale = 0.4, mode = linear", {"scale_factor": 0.4, "mode": "bilinear"}),
        ("[9, 4], mode = linear, coordinates = align_corners",
         {"size": (9, 4), "mode": "bilinear", "align_corners": True}),
        ("scale = 2.5, mode = cubic", {"scale_factor": 2.5, "mode": "bicubic"}),
        ("[3, 4], mode = linear, antialias = true, exclude_outside = true",
         {"size": (3, 4), "mode": "bilinear", "antialias": True}),
        ("[3, 4], mode = cubic, a = -0.5, antialias = true, exclude_outside = true",
         {"size": (3, 4), "mode": "bicubic", "antialias": True}))),
    Case("resize(x, [7, 3, 9], mode = linear)",
         lambda x: F.interpolate(x, size=(7, 3, 9), mode="trilinear"), {"x": (2, 3, 4, 5, 6)},
         {"x": (1, 16, 10, 17, 18)}),
    Case("pixel_shuffle(x, 2)", lambda x: F.pixel_shuffle(x, 2), {"x": (2, 12, 4, 5)},
         {"x": (2, 256, 56, 56)}),
    Case("layernorm(x, s, b)", lambda x, s, b: F.layer_norm(x, s.shape, s, b),
         {"x": (5, 13), "s": (13,), "b": (13,)}, {"x": (512, 768), "s": (768,), "b": (768,)}),
    Case("rmsnorm(x, s)", lambda x, s: F.rms_norm(x, s.shape, s, 1e-5), {"x": (5, 13), "s": (13,)},
         {"x": (256, 4096), "s": (4096,)}),
    Case("groupnorm(x, s, b, groups = 3)", lambda x, s, b: F.group_norm(x, 3, s, b),
         {"x": (2, 6, 4, 5), "s": (6,), "b": (6,)}, {"x": (2, 192, 32, 32), "s": (192,), "b": (192,)}),
    Case("instancenorm(x, s, b)", lambda x, s, b: F.instance_norm(x, weight=s, bias=b),
         {"x": (2, 6, 4, 5), "s": (6,), "b": (6,)}, {"x": (2, 64, 56, 56), "s": (64,), "b": (64,)}),
    Case("sdpa(q, k, v, m)", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
         {"q": (2, 3, 5, 4), "k": (2, 3, 6, 4), "v": (2, 3, 6, 4), "m": (1, 3, 5, 6)},
         {"q": (4, 12, 128, 64), "k": (4, 12, 128, 64), "v": (4, 12, 128, 64),
          "m": (1, 12, 128, 128)}),
    Case("sdpa(q, k, v, causal = true, align = start)",
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         {"q": (2, 3, 7, 4), "k": (2, 3, 4, 4), "v": (2, 3, 4, 4)},
         {"q": (2, 12, 200, 64), "k": (2, 12, 128, 64), "v": (2, 12, 128, 64)}),
    Case("flatten(x, 1, end = 2)", lambda x: x.flatten(1, 2), {"x": (2, 3, 4, 5)}),
    Case("pad(x, [-1, 1], [2, -2])", lambda x: F.pad(x, (1, -2, -1, 2)), {"x": (3, 4)},
         {"x": (300, 1000)}),
    Case("sdpa(q, k, v)", F.scaled_dot_product_attention,
         {n: (2, 3, 5, 4) for n in "qkv"}, {n: (2, 12, 197, 64) for n in "qkv"}),
    Case("sdpa(q, k, v, causal = true)",
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         {n: (2, 3, 5, 4) for n in "qkv"}, {n: (1, 12, 1024, 64) for n in "qkv"}),
    Case("sdpa(q, k, v)", lambda q, k, v: F.scaled_dot_product_attention(
        q, k.repeat_interleave(q.shape[1] // k.shape[1], 1), v.repeat_interleave(q.shape[1] // k.shape[1], 1)),
         {"q": (1, 4, 5, 6), "k": (1, 2, 7, 6), "v": (1, 2, 7, 3)},
         {"q": (1, 32, 128, 128), "k": (1, 8, 300, 128), "v": (1, 8, 300, 128)}),
    Case("attention(x, heads = 4, causal = true, wq = wq, bq = bq, wk = wk, bk = bk, wv = wv, bv = bv, "
         "wo = wo, bo = bo)", attention(4), projections(2, 5, 8), projections(1, 256, 768)),
    Case("rope(x)", rope, {"x": (2, 3, 5, 6)}, {"x": (2, 12, 512, 64)}),
    Case("embedding(ids, w)", lambda w, ids: F.embedding(ids.long(), w), {"w": (11, 5)},
         {"w": (50257, 768)}, ids={"ids": ((2, 7), (4, 256), 0)}),
    Case("gather(x, ids, axis = 1)", lambda x, ids: x.index_select(1, ids), {"x": (3, 11, 4)},
         {"x": (16, 1000, 64)}, ids={"ids": ((6,), (700,), 1)}),
    Case("scatter_add(x, ids, u)", lambda x, u, ids: x.index_add(0, ids, u),
         {"x": (11, 4), "u": (6, 4)}, {"x": (5000, 128), "u": (9000, 128)},
         ids={"ids": ((6,), (9000,), 0)}),
    Case("concat(x, y, axis = 1)", lambda x, y: torch.cat((x, y), 1), {"x": (2, 3, 4), "y": (2, 5, 4)},
         {"x": (2, 256, 3136), "y": (2, 32, 3136)}),
    Case("stack(x, y, axis = 1)", lambda x, y: torch.stack((x, y), 1), {"x": (2, 3), "y": (2, 3)},
         {"x": (64, 1000), "y": (64, 1000)}),
    Case("pad(x, [0, 1], [2, 0], value = 0.5)", lambda x: F.pad(x, (1, 0, 0, 2), value=0.5),
         {"x": (3, 4)}, {"x": (300, 1000)}),
    Case("tile(x, [2, 3])", lambda x: x.tile(2, 3), {"x": (3, 4)}, {"x": (100, 300)}),
    Case("flip(x, axis = 1)", lambda x: x.flip(1), {"x": (3, 4)}, {"x": (300, 1000)}),
    Case("x[1:, ::2]", lambda x: x[1:, ::2], {"x": (3, 7)}, {"x": (301, 999)}),
    Case("cross_entropy(x, ids)", lambda x, ids: F.cross_entropy(x, ids.long()), {"x": (7, 5)},
         {"x": (256, 50257)}, ids={"ids": ((7,), (256,), 1)}),
    Case("cross_entropy(x, ids, label_smoothing = 0.1, reduction = none)",
         lambda x, ids: F.cross_entropy(x, ids.long(), label_smoothing=0.1, reduction="none"),
         {"x": (7, 5)}, {"x": (256, 1000)}, ids={"ids": ((7,), (256,), 1)}),
    Case("nll(log_softmax(x), ids)", lambda x, ids: F.nll_loss(x.log_softmax(-1), ids.long()),
         {"x": (7, 5)}, {"x": (256, 1000)}, ids={"ids": ((7,), (256,), 1)}),
    Case("mse(x, y)", F.mse_loss, {"x": (3, 4), "y": (3, 4)}, {"x": (64, 3072), "y": (64, 3072)}),
    Case("l1(x, y)", F.l1_loss, {"x": (3, 4), "y": (3, 4)}, {"x": (64, 3072), "y": (64, 3072)}),
    Case("huber(x, y, delta = 0.7)", lambda x, y: F.huber_loss(x, y, delta=0.7),
         {"x": (3, 4), "y": (3, 4)}, {"x": (64, 3072), "y": (64, 3072)}),
    Case("bce(x, y, reduction = sum)", lambda x, y: F.binary_cross_entropy(x, y, reduction="sum"),
         {"x": (3, 4), "y": (3, 4)}, {"x": (64, 3072), "y": (64, 3072)}, draw=SHARE),
    Case("bce_with_logits(x, sigmoid(y))",
         lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
         {"x": (3, 4), "y": (3, 4)}, {"x": (64, 3072), "y": (64, 3072)}),
    Case("kl_div(x, y, reduction = batchmean)",
         lambda x, y: F.kl_div(x, y, reduction="batchmean"), {"x": (3, 4), "y": (3, 4)},
         {"x": (64, 1000), "y": (64, 1000)}, draw=SHARE),
]


class Drawn:
    """A case at one size: its operands, its text in the model, and what PyTorch makes of it."""

    def __init__(self, number, case, size, random):
        self.case, self.number = case, number
        self.operand = {}
        for name, shape in case.sizes[size].items():
            self.operand[name] = (random.uniform(*case.draw, shape) if case.draw
                                  else random.standard_normal(shape)).astype("float32")
        rows = next(iter(self.operand.values())).shape
        self.ids = {name: random.integers(0, rows[shapes[2]], shapes[size]).astype("int32")
                    for name, shapes in case.ids.items()}
        self.weight = None
        self.results = {t: self.run(t, random) for t in (torch.float64, torch.float32)}

    def run(self, dtype, random):
        x = {k: torch.tensor(v, dtype=dtype, requires_grad=True) for k, v in self.operand.items()}
        y = self.case.like(*x.values(), *(torch.tensor(v) for v in self.ids.values()))
        if self.weight is None:
            self.weight = random.standard_normal(tuple(y.shape)).astype("float32")
        if self.case.smooth:
            (y * torch.tensor(self.weight, dtype=dtype)).sum().backward()
        return y.detach().numpy(), {k: v.grad.numpy() for k, v in x.items() if v.grad is not None}

    def name(self, operand):
        return f"c{self.number}_{operand}"

    def lines(self):
        for name, value in self.operand.items():
            yield f"param {self.name(name)} : {list(value.shape)}"
        for name, value in self.ids.items():
            yield f"input {self.name(name)} : i32{list(value.shape)}"
        names = "|".join([*self.operand, *self.ids])
        text = re.sub(rf"\b({names})\b(?!\s*=)", lambda m: self.name(m[0]), self.case.text)
        yield f"{self.name('o')} = {text}"
        yield f"output {self.name('o')}"
        if self.case.smooth:
            yield f"input {self.name('r')} : f32{list(self.weight.shape)}"
            yield f"loss = loss + sum({self.name('o')} * {self.name('r')})"

    def fill(self, model):
        for name, value in (self.operand | self.ids).items():
            model[self.name(name)][...] = value
        if self.case.smooth:
            model[self.name("r")][...] = self.weight

    def compare(self, model, outputs, table):
        truth, single = self.results[torch.float64], self.results[torch.float32]
        shape = "x".join(str(d) for d in next(iter(self.operand.values())).shape)
        what = f"{self.case.text} {shape}"
        table.row(what, "result", outputs[self.name("o")], single[0], truth[0])
        for name in truth[1]:
            table.row(what, f"gradient of {name}", model.gradient(self.name(name)), single[1][name],
                      truth[1][name])


def check(gplan, table):
    for size in (0, 1):
        random = numpy.random.default_rng(size)
        cases = [Drawn(i, case, size, random) for i, case in enumerate(CASES)]
        text = "\n".join(["model ops", "param begin : [1]", "loss = sum(begin)",
                          *(line for case in cases for line in case.lines()),
                          "train loss using sgd(lr = 0, momentum = 0.9)", ""])
        model = Emitted(gplan, text)
        for case in cases:
            case.fill(model)
        model.forward()
        outputs = {name: model[name].copy() for name in model.of_kind("output")}
        model.step()
        for case in cases:
            case.compare(model, outputs, table)
