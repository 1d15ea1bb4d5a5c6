#!/bin/sh
# Times elementwise loops as gplan emits them: bytes read and written a second, each next to the same
# of memcpy (GB/s), as BENCH, the program of cpu_bench.c, measures it.
# usage: tests/cpu/loops.sh GPLAN BENCH [THREADS]
set -u
gplan=$1
bench=$2
threads=${3:-1}
case $gplan in /*) ;; *) gplan=$PWD/$gplan ;; esac
case $bench in /*) ;; *) bench=$PWD/$bench ;; esac
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

row() { # NAME TENSORS EXPRESSION: how many large ones it reads and writes
    cat >"$work/loop.g" <<EOF
model loop(batch B = 32768)
input x : f32[B, 768]
input y : f32[B, 768]
input b : f32[768]
output z = $3
EOF
    "$gplan" "$work/loop.g" --infer --threads "$threads" --quiet -o "$work/loop.c" &&
        gcc -O3 -march=native -fopenmp -DMODEL=loop -DMODEL_UPPER=LOOP '-DHEADER="loop.h"' \
            "-I$work" "$root/tests/cpu/model.c" "$work/loop.c" -lm -o "$work/loop" || return
    copy=$("$bench" "$threads" copy)
    "$work/loop" "$threads" 30 | awk -v name="$1" -v tensors="$2" -v copy="$copy" \
        '{ speed = tensors * 4 * 32768 * 768 / $1 / 1e9
           printf "%-14s %-28s %8.1f %8.1f   %5.2f\n", name, "32768 x 768", speed, copy, speed / copy }'
}

row relu 2 'relu(x)'
row add 3 'x + y'
row gelu 2 'gelu(x, form = tanh)'
row 'bias, gelu' 2 'gelu(x + b, form = tanh)'
row gelu_exact 2 'gelu(x)'
row silu 2 'silu(x)'
