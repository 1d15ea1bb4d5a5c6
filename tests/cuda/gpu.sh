#!/bin/sh
# Whole models on a GPU beside the emitted C: tests/cuda/gpu.sh GPLAN
# What run.sh has run on the CPU, on the device itself: steps, graphs that are captured and replayed,
# files that are saved and loaded by either program. Where there is no GPU, one of the models is
# compiled, and that is said; without nvcc there is nothing to do.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
    echo 'there is no nvcc: no model was run on a GPU'
    exit 0
fi
cd "$work" || exit 1
loud=yes

device_object() { # SOURCE OBJECT FLAGS...
    source=$1
    object=$2
    shift 2
    "$nvcc" -std=c++17 -O2 -fmad=false "$flags" "$@" -c "$source" -o "$object"
}

device_program() { # PROGRAM FLAGS...
    program=$1
    shift
    "$nvcc" -std=c++17 -O1 "$flags" "$@" -lcublas -o "$program"
}

orders=any
tolerance=1e-3 # sums of another order, and what four steps make of it
# shellcheck source=tests/cuda/beside.sh
. "$here/beside.sh"

g++ -O1 "$here/near.cpp" -o near && "$nvcc" "$here/devices.cu" -o devices || exit 1
if ./devices; then
    flags=-arch=native
    whole_models
else
    flags=-arch=sm_$("$here/architectures.sh" "$nvcc" numbers | head -n 1)
    compiles() {
        mkdir -p cuda && "$gplan" "$examples/lenet.g" -D B=2 --quiet -o cuda/lenet.cu &&
            build_cuda lenet cuda on_cuda && ! ./on_cuda lenet.dump 4 plain 2>said &&
            grep -q 'failed: a stream' said
    }
    check 'lenet is compiled, and not run' compiles
    echo 'there is no GPU: `make test` runs these models on the CPU, this command runs them on one'
fi
finish
