"""Two ranks beside one that does the work of both, and beside PyTorch's DDP with gloo.

usage: ranks.py GPLAN FOLDER prepare|measure [gpt2|resnet50]...

`prepare` writes and compiles the programs, `measure` runs them, in turns, one thread a process. The
same parameters and batch for all; no compiler fuses products and sums, which it may do
elsewhere in another program. First the bits of two ranks are compared with those of
--as-ranks 2 (which are those of --accumulate 2 where each micro-batch adds to a gradient once, so
not of gpt2's table), and their losses with DDP's. Then it prints the time of a step, what is lost to
communication (beside two processes that train alone, at the same time, on the same machine), bytes
a rank at each way to shard, and what is resident above the arena. Needs mpicc.openmpi."""
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = {"gpt2": {"B": 4, "T": 256}, "resnet50": {"B": 8, "S": 224}}
STEPS, RATE = 3, 0.0001
AGREES = [1e-5, 1e-4, 1e-3]  # of each step: what rounding adds to grows in batchnorm's gradients
PROGRAMS = {"ranks": ("--ranks", "2", "--shard", "none"), "one": ("--as-ranks", "2"), "alone": ()}


# ---- The models ----------------------------------------------------------------------------------

def text_of(name):
    with open(os.path.join(HERE, "..", "..", "examples", name + ".g")) as file:
        text = file.read()
    text = re.sub(r"(dropout\(.*), 0\.\d+\)", r"\1, 0)", text)
    text = text.replace("batchnorm(x)", "batchnorm(x, over = micro)")
    return re.sub(r"using .*", f"using sgd(lr = {RATE}, momentum = 0.9)", text.split(" {\n  clip")[0])


def leaves(module):
    """Layers with parameters in gplan's order: of a block, its shortcut first."""
    children = dict(module.named_children())
    order = sorted(children, key=lambda key: key != "shortcut")
    found = [] if children else [module] * bool(list(module.parameters()))
    for key in order:
        found += leaves(children[key])
    return found


def model_of(name):
    import torch
    sys.path.insert(0, os.path.join(HERE, "..", "cpu"))
    import peer_models
    from models import gpt2_pairs
    torch.manual_seed(3)
    if name == "gpt2":
        model = peer_models.Gpt2(SIZES[name]["T"])
        for p in model.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, 0, 0.02)
        return model, gpt2_pairs(model)
    model = peer_models.Resnet50()
    pairs = []
    for layer in leaves(model):
        pairs.append((layer.weight, isinstance(layer, torch.nn.Linear)))
        if layer.bias is not None:
            pairs.append((layer.bias, False))
    return model, pairs


def batch_of(name):
    import torch
    torch.manual_seed(4)
    size = SIZES[name]
    if name == "gpt2":
        tokens = torch.randint(0, 50257, (size["B"], size["T"] + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    return (torch.randn(size["B"], 3, size["S"], size["S"]),
            torch.randint(0, 1000, (size["B"],)))


# ---- gplan ---------------------------------------------------------------------------------------

def path(folder, name, kind):
    return os.path.join(folder, f"{name}_{kind}")


def prepare(gplan, folder, name):
    import torch
    from models import array_of
    model, pairs = model_of(name)
    with open(path(folder, name, "parameters"), "wb") as file:
        for pair in pairs:
            file.write(array_of(*pair).astype("float32").tobytes())
    with open(path(folder, name, "batch"), "wb") as file:
        for part in batch_of(name):
            file.write((part if part.is_floating_point() else part.to(torch.int32)).numpy().tobytes())
    with open(path(folder, name, "model.g"), "w") as file:
        file.write(text_of(name))
    for kind, options in PROGRAMS.items():
        sizes = dict(SIZES[name])
        sizes["B"] //= 2 if kind == "alone" else 1
        out = path(folder, name, kind)
        given = [x for key, value in sizes.items() for x in ("-D", f"{key}={value}")]
        subprocess.run([gplan, path(folder, name, "model.g"), *given, *options, "--threads", "1",
                        "--recompute", "none", "--chunked-loss", "never", "--prefix", "net",
                        "--programs", "step", "--quiet", "-o", out + ".c"], check=True)
        subprocess.run(["mpicc.openmpi" if kind == "ranks" else "gcc", "-O3", "-march=native", "-ffp-contract=off", "-w",
                        f'-DHEADER="{name}_{kind}.h"', "-I", folder, os.path.join(HERE, "ranks.c"),
                        out + ".c", "-lm", "-o", out], check=True)
    print(f"{name}: bytes a rank of 2, without recomputation:")
    for shard in ("none", "state", "gradients"):
        report = subprocess.run([gplan, path(folder, name, "model.g"), *given[:0], "-D",
                                 f"B={SIZES[name]['B']}", *given[2:], "--ranks", "2", "--shard", shard,
                                 "--threads", "1", "--recompute", "none", "--chunked-loss", "never",
                                 "--programs", "step", "--report"], check=True, capture_output=True, text=True)
        print("   ", shard, re.search(r"bytes a rank +(.*?)  ", report.stdout).group(1))


def run(command, copies=1):
    """What the first of them said: losses, and numbers by name."""
    env = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
               for _ in range(copies)]
    said = [one.communicate()[0] for one in running]
    if any(one.returncode for one in running):
        sys.exit(f"{command} failed")
    words = [line.split() for line in said[0].splitlines()]
    numbers = {key: value for key, value in words if key != "loss"}
    return [float(value) for key, value in words if key == "loss"], numbers


def measure_gplan(folder, name):
    found = {}
    for kind in PROGRAMS:
        given = [path(folder, name, kind), path(folder, name, "parameters"),
                 path(folder, name, "half" if kind == "alone" else "batch"), str(STEPS)]
        if kind == "ranks":
            given = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", "2"] + given
        found[kind] = run(given, 2 if kind == "alone" else 1)
    return found


# ---- PyTorch -------------------------------------------------------------------------------------

def torch_rank(rank, name, shares, port, told):
    """A process of two; `shares`: gradients go over gloo."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    model, _ = model_of(name)
    inputs, labels = (part.chunk(2)[rank].contiguous() for part in batch_of(name))
    model.train()
    trained = torch.nn.parallel.DistributedDataParallel(model) if shares else model
    sgd = torch.optim.SGD(trained.parameters(), lr=RATE, momentum=0.9)
    losses, shortest = [], 1e30
    for step in range(STEPS):
        begin = time.monotonic()
        sgd.zero_grad(set_to_none=False)
        out = trained(inputs)
        loss = F.cross_entropy(out.reshape(-1, out.shape[-1]), labels.reshape(-1))
        loss.backward()
        sgd.step()
        if step > 0:
            shortest = min(shortest, time.monotonic() - begin)
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        losses.append(whole.item() / 2)
    with open("/proc/self/status") as file:
        peak = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))
    if rank == 0:
        told.put((losses, shortest, peak))
    dist.destroy_process_group()


def measure_torch(name, shares, port):
    import torch.multiprocessing as mp
    told = mp.get_context("spawn").SimpleQueue()
    mp.spawn(torch_rank, (name, shares, port, told), nprocs=2)
    return told.get()


# ---- Both ----------------------------------------------------------------------------------------

def measure(folder, name):
    import torch
    with open(path(folder, name, "half"), "wb") as file:
        for part in batch_of(name):
            part = part.chunk(2)[0]
            file.write((part if part.is_floating_point() else part.to(torch.int32)).numpy().tobytes())
    ours = measure_gplan(folder, name)
    theirs = [measure_torch(name, shares, 29510 + shares) for shares in (True, False)]
    equal = ours["ranks"][0] == ours["one"][0] and ours["ranks"][1]["hash"] == ours["one"][1]["hash"]
    apart = [abs(a - b) / abs(b) for a, b in zip(ours["ranks"][0], theirs[0][0], strict=True)]
    agree = all(off <= most for off, most in zip(apart, AGREES, strict=True))
    print(f"{name} {SIZES[name]}, {STEPS} steps: losses {ours['ranks'][0]}")
    print(f"    bits of one rank for both: {'equal' if equal else 'WRONG'}; "
          f"losses {', '.join(f'{off:.1e}' for off in apart)} from DDP's{'' if agree else ': WRONG'}")
    seconds = {kind: float(ours[kind][1]["seconds"]) for kind in PROGRAMS}
    rank = ours["ranks"][1]
    print(f"    seconds of a step: 2 ranks {seconds['ranks']:.3f}, one for both "
          f"{seconds['one']:.3f}, two alone {seconds['alone']:.3f}; "
          f"DDP {theirs[0][1]:.3f}, two without it {theirs[1][1]:.3f}")
    print(f"    lost to communication: gplan {100 * (1 - seconds['alone'] / seconds['ranks']):.1f} %, "
          f"DDP {100 * (1 - theirs[1][1] / theirs[0][1]):.1f} %")
    print(f"    a rank: arena {float(rank['arena']) / 1024:.1f} MiB, resident above it "
          f"{float(rank['above']) / 1024:.1f} MiB; DDP resident {theirs[0][2] / 1024:.1f} MiB")
    return equal and agree


def main():
    gplan, folder, what, names = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:] or list(SIZES)
    good = True
    for name in names:
        if what == "prepare":
            prepare(os.path.abspath(gplan), folder, name)
        else:
            good &= measure(folder, name)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
