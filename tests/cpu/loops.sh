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

wrong=0
# Only what an expression reads is an input of the program.
reads() { # NAME WORD EXPRESSION: how model.c reads it
    case $3 in
    *"$2"*) echo "-D$1(m,i)=loop_$2(m)[(i)%LOOP_$(echo "$2" | tr xyb XYB)_COUNT]" ;;
    *) echo "-D$1(m,i)=0.0" ;;
    esac
}
row() { # NAME TENSORS EXPRESSION EXPECTED: how many large ones it reads and writes; the same in C
    inputs=$(echo "$3" | tr -cs 'xyb' '\n' | tr -d '\n')
    cat >"$work/loop.g" <<EOF
model loop(batch B = 32768)
input x : f32[B, 768]
input y : f32[B, 768]
input b : f32[768]
output z = $3
EOF
    "$gplan" "$work/loop.g" --infer --threads "$threads" --quiet -o "$work/loop.c" &&
        gcc -O3 -march=native -fopenmp -DMODEL=loop -DMODEL_UPPER=LOOP '-DHEADER="loop.h"' \
            "-DEXPECTED=($4)" "$(reads X x "$inputs")" "$(reads Y y "$inputs")" \
            "$(reads BIAS b "$inputs")" "-I$work" "$root/tests/cpu/model.c" "$work/loop.c" -lm -o "$work/loop" || return
    copy=$("$bench" "$threads" copy)
    "$work/loop" "$threads" 30 >"$work/times" || { echo "$1: $(cat "$work/times")"; wrong=1; return; }
    awk -v name="$1" -v tensors="$2" -v copy="$copy" \
        '{ speed = tensors * 4 * 32768 * 768 / $1 / 1e9
           printf "%-14s %-28s %8.1f %8.1f   %5.2f\n", name, "32768 x 768", speed, copy, speed / copy }' "$work/times"
}

gauss='x * 0.5 * (1 + erf(x * 0.70710678118654752))'
tanhs() { echo "0.5 * ($1) * (1 + tanh(0.79788456080286536 * (($1) + 0.044715 * pow($1, 3))))"; }
row relu 2 'relu(x)' 'x > 0 ? x : 0'
row add 3 'x + y' 'x + y'
row gelu 2 'gelu(x, form = tanh)' "$(tanhs x)"
row 'bias, gelu' 2 'gelu(x + b, form = tanh)' "$(tanhs '(x + b)')"
row gelu_exact 2 'gelu(x)' "$gauss"
row silu 2 'silu(x)' 'x / (1 + exp(-x))'
exit $wrong
