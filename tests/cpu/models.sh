#!/bin/sh
# Times whole models as gplan emits them: seconds of one pass or step, samples a second, operations a
# second and what share of PEAK (GFLOP/s) they are, what the arena holds and what is resident. With
# PYTHON, the models that peers.py has run in PyTorch and ONNX Runtime too, in turns with ours, three
# of each; the ratio is how many times as fast ours is.
# usage: tests/cpu/models.sh GPLAN [THREADS] [PEAK] [PYTHON]
set -u
gplan=$1
threads=${2:-2}
peak=${3:-0}
python=${4:-}
case $gplan in /*) ;; *) gplan=$PWD/$gplan ;; esac
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

work_of() { # OPTIONS...: operations of all programs that are emitted
    "$gplan" "$@" --threads 1 --recompute none --quiet --emit json |
        sed -n 's/.*"flops":[0-9.e+]*,"of":\([0-9.e+]*\).*/\1/p'
}

# Where LIBRARY runs the model of the row: its best and ours of three turns each.
peer() { # LIBRARY MODEL BATCH KIND RUNS NOTE
    for _ in 1 2 3; do
        theirs=$("$python" "$root/tests/cpu/peers.py" "$threads" "$1" "$2" "$4" "$3" $6) || return
        echo "$theirs;$("$work/model" "$threads" "$5" | cut -d ' ' -f 1)"
    done | awk -F ';' '{ theirs = NR == 1 || $2 < theirs ? $2 : theirs
                         ours = NR == 1 || $4 < ours ? $4 : ours
                         added = $3 > added ? $3 : added }
        END { if (NR == 3)
                  printf "    %-40s %9.4f s, in turns with ours: %.4f s, ratio %.2f %10.1f MiB added\n",
                         $1, theirs, ours, theirs / ours, added }'
}

# A file that trains also has the forward pass and the loss alone, which are not part of a step.
row() { # MODEL BATCH infer|train OPTIONS...
    model=$1
    batch=$2
    kind=$3
    shift 3
    step=''
    runs=20 # of which the best counts
    [ "$kind" = infer ] || { step=-DSTEP && runs=3; }
    case $model in mlp | lenet) runs=300 ;; esac # so short that threads have to wake first
    sizes=''
    budget=''
    note=''
    unclipped=''
    precision=''
    autocast=''
    source=examples/$model.g
    for option in "$@"; do
        case $option in
        --budget) ;;
        bf16)
            note="$note, bf16"
            precision='--precision bf16'
            autocast=bf16
            ;;
        unclipped)
            note="$note, no clipping"
            unclipped=unclipped
            source=$work/unclipped.g
            sed '/clip = /d' "examples/$model.g" >"$source"
            ;;
        *[MG]) budget="--budget $option" ;;
        *) sizes="$sizes -D $option" ;;
        esac
    done
    upper=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    # shellcheck disable=SC2086 # lists of words
    set -- "$source" -D "B=$batch" $sizes
    flops=$(work_of "$@" --infer)
    [ "$kind" = infer ] ||
        flops=$(echo "$flops $(work_of "$@" --train)" | awk '{ printf "%.0f", $2 - 2 * $1 }')
    # shellcheck disable=SC2086
    "$gplan" "$@" $budget $precision "--$kind" --threads "$threads" --quiet -o "$work/$model.c" &&
        gcc -O3 -march=native -fopenmp ${step:+"$step"} "-DMODEL=$model" "-DMODEL_UPPER=$upper" \
            "-DHEADER=\"$model.h\"" "-I$work" "$root/tests/cpu/model.c" "$work/$model.c" -lm \
            -o "$work/model" || return
    "$work/model" "$threads" "$runs" | awk -v name="$model $kind, batch $batch$note${budget:+, }${budget#--}" \
        -v batch="$batch" -v flops="$flops" -v peak="$peak" \
        '{ share = peak > 0 ? sprintf("%3.0f%%", flops / $1 / 1e7 / peak) : "   -"
           printf "%-44s %9.4f s %9.2f /s %7.1f GFLOP/s %s %8.1f MiB arena %8.1f MiB resident\n",
           name, $1, batch / $1, flops / $1 / 1e9, share, $2 / 1048576, $3 / 1048576 }'
    [ -n "$python" ] || return 0
    case $model in resnet50 | gpt2) peer torch "$model" "$batch" "$kind" "$runs" "$unclipped $autocast" ;; esac
    case $model$kind$autocast in resnet50infer) peer onnx "$model" "$batch" "$kind" "$runs" '' ;; esac
}

if [ -n "$python" ]; then
    "$python" -c 'import torch' 2>/dev/null || echo 'PyTorch is not installed: no comparison with it'
    "$python" -c 'import torch, onnx, onnxruntime' 2>/dev/null ||
        echo 'ONNX Runtime or the package onnx is not installed: no comparison with it'
fi

echo "whole models, $threads threads, share of a peak of $peak GFLOP/s"
row mlp 64 infer
row mlp 64 train
row lenet 64 infer
row lenet 64 train
row resnet50 1 infer
row resnet50 8 infer
row resnet50 8 train
row resnet50 8 train bf16 # PyTorch by its autocast
row resnet50 8 train --budget 712M # 60% of what PyTorch adds
row mobilenetv2 8 infer
row mobilenetv2 8 train
row gpt2 2 infer T=256
row gpt2 2 train T=256
row gpt2 2 train T=256 bf16
row gpt2 2 train T=256 --budget 1908M # clipping keeps all gradients: 76% of what PyTorch adds
row gpt2 2 train T=256 unclipped
row gpt2 2 train T=256 unclipped --budget 1756M # 70%
