"""resnet50 and gpt2 in PyTorch or ONNX Runtime, the models of examples/*.g: what tests/cpu/models.sh
runs beside its own, in turns.

usage: peers.py THREADS torch|onnx MODEL infer|train BATCH [unclipped] [bf16]. Prints the name of the library,
the seconds of one pass or step, the best of some, and the MiB that these added to what the process
had after its imports. Exits with 3 where the library is not installed. ONNX Runtime runs what
PyTorch exports, in another process."""
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings

sys.dont_write_bytecode = True
RUNS = {"infer": 20, "train": 3}  # of which the best counts: as tests/cpu/models.sh has them


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def model_of(name, batch):
    """The model, its input and what it should give."""
    import torch
    from peer_models import Gpt2, Resnet50
    if name == "resnet50":
        return Resnet50(), torch.rand(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
    tokens = torch.randint(0, 50257, (batch, 256))
    return Gpt2(256), tokens, tokens


def export(name, file):
    import torch
    model, x, _ = model_of(name, 1)
    warnings.simplefilter("ignore")
    torch.onnx.export(model.eval(), (x,), file, input_names=["x"], dynamo=False,
                      dynamic_axes={"x": {0: "batch"}})


def with_onnx(threads, name, batch):
    """What runs one pass, made by a function of its own: memory counts from its call on."""
    import numpy
    import onnxruntime
    title = f"ONNX Runtime {onnxruntime.__version__}"

    def prepare():
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.onnx")
            subprocess.run([sys.executable, __file__, "export", name, file], check=True)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            session = onnxruntime.InferenceSession(file, options)
        images = numpy.random.rand(batch, 3, 224, 224).astype("float32")
        return lambda: session.run(None, {"x": images})

    return title, prepare


def with_torch(threads, name, kind, batch, clip, half):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(threads)

    def step(model, optimizer, x, y):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            logits = model(x)
            loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    def prepare():
        model, x, y = model_of(name, batch)
        if kind == "infer":
            model.eval()
            torch.set_grad_enabled(False)
            return lambda: model(x)
        if name == "resnet50":
            sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
            return lambda: step(model, sgd, x, y)
        adamw = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
        return lambda: step(model, adamw, x, y)

    return f"PyTorch {torch.__version__}", prepare


def main():
    if sys.argv[1] == "export":
        export(sys.argv[2], sys.argv[3])
        return
    threads, library, name, kind, batch = int(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5])
    clip, half = name == "gpt2" and "unclipped" not in sys.argv, "bf16" in sys.argv
    try:
        title, prepare = (with_onnx(threads, name, batch) if library == "onnx" else
                          with_torch(threads, name, kind, batch, clip, half))
    except ImportError:
        sys.exit(3)
    imported = resident()
    run = prepare()
    run()
    best = 1e30
    for _ in range(RUNS[kind]):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    print(f"{title};{best:.6f};{resident() - imported:.1f}")


main()
