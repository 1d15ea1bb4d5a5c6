#!/bin/sh
# What GPUs code is made for: tests/cuda/architectures.sh NVCC numbers|flags [NUMBER...]
# Of the given architectures, or of all that kernels are written for, those that this toolkit has:
# as numbers, or as nvcc's flags. Of the newest the PTX is kept too, from which the driver of a GPU
# that is newer still makes its own code.
set -u
nvcc=$1
as=$2
shift 2
[ $# -gt 0 ] || set -- 75 80 90 100 120
known=$("$nvcc" --list-gpu-code) || exit 1
newest=
for number; do
    echo "$known" | grep -qx "sm_$number" || continue
    case $as in
    numbers) echo "$number" ;;
    flags) echo "-gencode arch=compute_$number,code=sm_$number" ;;
    esac
    newest=$number
done
[ "$as" = numbers ] || [ -z "$newest" ] ||
    echo "-gencode arch=compute_$newest,code=compute_$newest"
