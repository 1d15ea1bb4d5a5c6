"""The work of loader.c by torch's DataLoader and by tf.data, where they are installed.

usage: loaders.py FOLDER EPOCHS
"""
import os
import resource
import subprocess
import sys
import time

SIDE, BATCH = 224, 32
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def report(name, images, cpu, wall):
    here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    others = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"jpeg {name:26} {images / cpu:8.0f} images/CPU-s {images / wall:8.0f} images/s  "
          f"resident {(here + others) / 1024:6.1f} MiB", flush=True)


def cpu_seconds():
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def timed(name, epochs, batches):
    """Runs an epoch to warm up, then counts."""
    for _ in batches():
        pass
    cpu, wall, images = cpu_seconds(), time.time(), 0
    for _ in range(epochs):
        for batch in batches():
            images += len(batch)
    report(name, images, cpu_seconds() - cpu, time.time() - wall)


def torch_loader(folder, epochs, decoder, workers):
    import torch
    import torchvision
    from torchvision.transforms import v2
    torch.set_num_threads(1)
    first = [] if decoder == "pil" else [v2.ToImage()]
    steps = v2.Compose(first + [
        v2.Resize((SIDE, SIDE), antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    def read(path):
        return torchvision.io.decode_jpeg(torchvision.io.read_file(path))
    extra = {} if decoder == "pil" else {"loader": read}
    data = torchvision.datasets.ImageFolder(folder, transform=steps, **extra)
    loader = torch.utils.data.DataLoader(data, BATCH, shuffle=True, num_workers=workers,
                                         drop_last=True)
    timed(f"DataLoader {decoder}, workers {workers}", epochs, lambda: (x for x, _ in loader))


def tf_data(folder, epochs, antialias):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    paths = [os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs]
    def read(path):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        image = tf.image.resize(image, (SIDE, SIDE), antialias=antialias)
        image = tf.image.random_flip_left_right(image)
        return (image / 255.0 - MEAN) / STD
    data = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
    data = data.map(read, num_parallel_calls=2).batch(BATCH, drop_remainder=True).prefetch(2)
    timed("tf.data" + (", antialiased" if antialias else ""), epochs, lambda: iter(data))


KINDS = {
    "pil0": lambda f, e: torch_loader(f, e, "pil", 0),
    "pil2": lambda f, e: torch_loader(f, e, "pil", 2),
    "io0": lambda f, e: torch_loader(f, e, "io", 0),
    "io2": lambda f, e: torch_loader(f, e, "io", 2),
    "tf": lambda f, e: tf_data(f, e, False),
    "tf_antialiased": lambda f, e: tf_data(f, e, True),
}


def main():
    if len(sys.argv) == 4:
        KINDS[sys.argv[3]](sys.argv[1], int(sys.argv[2]))
        return
    for kind in KINDS:  # each in a process of its own: memory and CPU time are its own too
        done = subprocess.run([sys.executable] + sys.argv + [kind], stderr=subprocess.PIPE,
                              text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        if done.returncode:
            print(f"{kind}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")


if __name__ == "__main__":
    main()
