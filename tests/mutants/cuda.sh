#!/bin/sh
# A few small models as CUDA on the CPU beside C, a part of tests/cuda/run.sh that is quick: the
# emulator was compiled before. usage: tests/mutants/cuda.sh GPLAN EMULATOR PART...
# EMULATOR is the folder with the objects of tests/cuda_on_cpu.
here=$(cd "$(dirname "$0")" && pwd)
objects=''
for object in "$PWD/$2"/*.o; do
    case $object in *_test.o) ;; *) objects="$objects $object" ;; esac
done
# shellcheck source=tests/suite.sh
. "$here/../suite.sh"
shift 2
here=$root/tests/cuda
emulator=$root/tests/cuda_on_cpu
cd "$work" || exit 1
flags='-std=c++17 -O0 -w -ffp-contract=off -DGP_CUDA_ON_CPU'

device_object() { # SOURCE OBJECT FLAGS...
    source=$1
    object=$2
    shift 2
    # shellcheck disable=SC2086
    g++ $flags -I"$emulator" "$@" -x c++ -c "$source" -o "$object"
}

device_program() { # PROGRAM FLAGS...
    program=$1
    shift
    # shellcheck disable=SC2086
    g++ $flags -I"$emulator" "$@" $objects -lm -o "$program"
}

orders=shuffled
tolerance=
# shellcheck source=tests/cuda/beside.sh
. "$here/beside.sh"

g++ -std=c++17 -O0 "$here/near.cpp" -o near || exit 1
for part in "$@"; do
    case $part in
    each) check each model each "$here/each.g" 1e-6 && ways each && check loops loops ;;
    betas) check betas model betas "$here/betas.g" 1e-6 && check replayed same betas replay ascending ;;
    mlp) check mlp model mlp "$examples/mlp.g" 1e-4 -D B=4 -D H=19 && ways mlp ;;
    dropout) check dropout model dropout "$train/dropout.g" 1e-4 --accumulate 2 && ways dropout ;;
    esac
    [ "$failed" -eq 0 ] || break
done
finish
