#!/bin/sh
# Times whole models as gplan emits them: seconds of one pass or step, samples a second, what the
# arena holds and what is resident. usage: tests/cpu/models.sh GPLAN [THREADS]
set -u
gplan=$1
threads=${2:-2}
case $gplan in /*) ;; *) gplan=$PWD/$gplan ;; esac
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

row() { # MODEL BATCH infer|train OPTIONS...
    model=$1
    batch=$2
    kind=$3
    shift 3
    step=''
    [ "$kind" = infer ] || step=-DSTEP
    upper=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    "$gplan" "examples/$model.g" -D "B=$batch" "$@" "--$kind" --threads "$threads" --quiet \
        -o "$work/$model.c" &&
        gcc -O3 -march=native -fopenmp ${step:+"$step"} "-DMODEL=$model" "-DMODEL_UPPER=$upper" \
            "-DHEADER=\"$model.h\"" "-I$work" "$root/tests/cpu/model.c" "$work/$model.c" -lm \
            -o "$work/model" || return
    "$work/model" "$threads" 3 | awk -v name="$model $kind, batch $batch" -v batch="$batch" \
        '{ printf "%-34s %9.4f s %9.2f /s %8.1f MiB arena %8.1f MiB resident\n",
           name, $1, batch / $1, $2 / 1048576, $3 / 1048576 }'
}

echo "whole models, $threads threads"
row mlp 64 infer
row mlp 64 train
row lenet 64 infer
row lenet 64 train
row resnet50 1 infer
row resnet50 8 infer
row resnet50 8 train
row mobilenetv2 8 infer
row mobilenetv2 8 train
row gpt2 2 infer -D T=256
row gpt2 2 train -D T=256
