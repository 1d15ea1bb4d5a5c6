"""resnet50 and gpt2 in PyTorch, the models of examples/*.g, beside tests/cpu/models.sh.

usage: peers.py [threads [part]]. Says so where PyTorch is not installed. ONNX Runtime runs what
PyTorch exports, where it and the package onnx are installed too. Each part runs in a process of its
own: memory is what it adds to what the process had after its imports."""
import io
import resource
import subprocess
import sys
import time

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed: no comparison with it")
    sys.exit(0)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Identity()
        if stride > 1 or inputs != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class Resnet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                  nn.MaxPool2d(3, 2, 1)]
        inputs = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                layers.append(Bottleneck(inputs, width, stride if i == 0 else 1))
                inputs = 4 * width
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(2048, 1000)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class Layer(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(
            2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50257, 768), nn.Embedding(length, 768)
        self.layers = nn.Sequential(*[Layer(768, 12) for _ in range(12)])
        self.norm = nn.LayerNorm(768)

    def forward(self, x):
        h = self.layers(self.tokens(x) + self.places.weight)
        return self.norm(h) @ self.tokens.weight.t()


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


imported = resident()
INFER, TRAIN = 20, 3  # runs, of which the best counts: as tests/cpu/models.sh has them


def report(name, samples, run, times):
    run()
    best = 1e30
    for _ in range(times):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    print(f"{name:44s} {best:9.4f} s {samples / best:9.2f} /s {'':18s} "
          f"{resident() - imported:8.1f} MiB added", flush=True)


def train(model, optimizer, x, y, clip):
    optimizer.zero_grad()
    logits = model(x)
    F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1)).backward()
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def onnx_rows(model, x, threads):
    try:
        import onnx  # noqa: F401 (the exporter needs it)
        import onnxruntime
    except ImportError:
        print("ONNX Runtime or the package onnx is not installed: no comparison with it")
        return
    file = io.BytesIO()
    torch.onnx.export(model, (x[:1],), file, input_names=["x"], dynamo=False,
                      dynamic_axes={"x": {0: "batch"}})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(file.getvalue(), options)
    print(f"ONNX Runtime {onnxruntime.__version__}, {threads} threads")
    for batch in (1, 8):
        images = x[:batch].numpy()
        report(f"resnet50 infer, batch {batch}", batch, lambda: session.run(None, {"x": images}), INFER)


def images():
    return Resnet50(), torch.rand(8, 3, 224, 224), torch.randint(0, 1000, (8,))


def resnet50_infer(threads):
    model, x, _ = images()
    with torch.no_grad():
        model.eval()
        report("resnet50 infer, batch 1", 1, lambda: model(x[:1]), INFER)
        report("resnet50 infer, batch 8", 8, lambda: model(x), INFER)
    onnx_rows(model, x, threads)


def resnet50_train(_):
    model, x, y = images()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    report("resnet50 train, batch 8", 8, lambda: train(model, sgd, x, y, False), TRAIN)


def gpt2_infer(_):
    model, x = Gpt2(256), torch.randint(0, 50257, (2, 256))
    with torch.no_grad():
        report("gpt2 infer, batch 2", 2, lambda: model(x), INFER)


def gpt2_train(_, clip=True):
    model, x = Gpt2(256), torch.randint(0, 50257, (2, 256))
    adamw = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    name = "gpt2 train, batch 2" + ("" if clip else ", no clipping")
    report(name, 2, lambda: train(model, adamw, x, x, clip), TRAIN)


PARTS = {"resnet50_infer": resnet50_infer, "resnet50_train": resnet50_train,
         "gpt2_infer": gpt2_infer, "gpt2_train": gpt2_train,
         "gpt2_unclipped": lambda threads: gpt2_train(threads, clip=False)}


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    torch.set_num_threads(threads)
    if len(sys.argv) > 2:
        PARTS[sys.argv[2]](threads)
        return
    print(f"PyTorch {torch.__version__}, eager, {threads} threads", flush=True)
    for part in PARTS:
        subprocess.run([sys.executable, __file__, str(threads), part], check=True)


main()
