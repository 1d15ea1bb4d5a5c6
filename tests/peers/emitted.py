"""A model that gplan emits, compiled as a user would and called from here."""
import ctypes
import os
import subprocess
import tempfile

import numpy

KINDS = ("input", "output", "param", "state")
DTYPES = (numpy.float32, numpy.float16, numpy.uint16, numpy.int32, numpy.int64, numpy.uint8,
          numpy.bool_)
THREADS = 2


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("dtype", ctypes.c_int),
                ("rank", ctypes.c_int), ("dim", ctypes.c_int64 * 8), ("offset", ctypes.c_size_t),
                ("bytes", ctypes.c_size_t)]


class Emitted:
    """text: a model of gplan's language. Its tensors are arrays in the arena: self["name"]."""

    def __init__(self, gplan, text, options=()):
        self.name = text.split("model ")[1].split("(")[0].split()[0]
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, self.name)
            with open(source + ".g", "w") as file:
                file.write(text)
            with open(source + "_size.c", "w") as file:
                file.write(f'#include "{self.name}.h"\n'
                           f"size_t {self.name}_size(void);\n"
                           f"size_t {self.name}_size(void) {{ return sizeof({self.name}); }}\n"
                           f"size_t {self.name}_bytes(void);\n"
                           f"size_t {self.name}_bytes(void) "
                           f"{{ return {self.name.upper()}_ARENA_BYTES; }}\n")
            subprocess.run([gplan, source + ".g", "--quiet", "--threads", str(THREADS), "-o",
                            source + ".c", *options], check=True)
            subprocess.run(["gcc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-w",
                            source + ".c", source + "_size.c", "-lm", "-o", source + ".so"],
                           check=True)
            self.library = ctypes.CDLL(source + ".so")
        for function in ("size", "bytes"):
            self.function(function).restype = ctypes.c_size_t
        self.model = ctypes.create_string_buffer(self.function("size")())
        size = self.function("bytes")()
        self.memory = numpy.zeros(size + 64, numpy.uint8)
        begin = -self.memory.ctypes.data % 64
        self.arena = self.memory[begin:begin + size]
        self.call("init", ctypes.c_void_p(self.arena.ctypes.data), ctypes.c_size_t(size))
        self.function("reset")(self.model, ctypes.c_uint64(1))
        self.function("threads")(self.model, THREADS)
        self.tensors = self.table()

    def function(self, name):
        return getattr(self.library, f"{self.name}_{name}")

    def call(self, name, *arguments):
        code = self.function(name)(self.model, *arguments)
        if code:
            strerror = self.function("strerror")
            strerror.restype = ctypes.c_char_p
            raise RuntimeError(f"{self.name}_{name}: {strerror(code).decode()}")

    def table(self):
        count = ctypes.c_size_t()
        tensors = self.function("tensors")
        tensors.restype = ctypes.POINTER(Tensor)
        rows = tensors(ctypes.byref(count))
        found = {}
        for row in (rows[i] for i in range(count.value)):
            part = self.arena[row.offset:row.offset + row.bytes]
            array = part.view(DTYPES[row.dtype]).reshape(row.dim[:row.rank])
            found[row.name.decode()] = (KINDS[row.kind], array)
        return found

    def __getitem__(self, name):
        return self.tensors[name][1]

    def of_kind(self, *kinds):
        return [name for name, (kind, _) in self.tensors.items() if kind in kinds]

    def forward(self):
        self.call("forward")

    def step(self):
        loss = ctypes.c_float()
        self.call("step", ctypes.byref(loss))
        return loss.value

    def gradient(self, name):
        """What sgd with momentum has of a parameter after the first step: its gradient, which is 0
        where it has nothing."""
        states = [other for other in self.of_kind("state")
                  if other.startswith(name + ".") and ".sgd" in other]
        return self[states[0]] if states else numpy.zeros_like(self[name])
