#!/bin/sh
# Emitted CUDA, run on the CPU by tests/cuda_on_cpu beside the emitted C: tests/cuda/run.sh gplan
# Whole models must compute what the C program does, whatever the order of threads, within a
# budget or not, step by step or replayed. With nvcc on the machine a few are compiled with it too;
# `make cuda-check` takes them all.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
examples=$root/examples
train=$root/tests/train
emitted=$root/tests/emit
emulator=$root/tests/cuda_on_cpu
cd "$work" || exit 1
loud=yes
without=
# The kernels and programs of both targets in the same arithmetic; fields that are left out of an
# initializer are 0; kernels come with those of their kind.
cpp='-std=c++17 -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-function
-ffp-contract=off'
sanitize='-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined'
build_flags=-O1 # pages that fault lie round the arena; the sanitizers see one model and all ops
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0

emulate() {
    for source in "$emulator"/*.cpp; do
        case $source in *_test.cpp) continue ;; esac
        # shellcheck disable=SC2086
        g++ $cpp $build_flags -DGP_CUDA_ON_CPU -I"$emulator" -c "$source" \
            -o "emulator_$(basename "$source" .cpp).o" || return 1
    done
    # shellcheck disable=SC2086
    g++ $cpp -O1 "$here/near.cpp" -o near
}

# drive as PROGRAM for the model that was emitted as FOLDER/MODEL.c or .cu
build_c() { # MODEL FOLDER PROGRAM FLAGS...
    model=$1
    folder=$2
    program=$3
    shift 3
    gcc -std=c11 -O1 -ffp-contract=off -c "$folder/$model.c" -o c.o &&
        build "$model" "$folder" "$program" c.o "$@"
}

build_cuda() { # MODEL FOLDER PROGRAM FLAGS...
    model=$1
    folder=$2
    program=$3
    shift 3
    # shellcheck disable=SC2086
    g++ $cpp $build_flags -DGP_CUDA_ON_CPU -I"$emulator" "$@" -x c++ -c "$folder/$model.cu" \
        -o cu.o &&
        build "$model" "$folder" "$program" cu.o -DON_DEVICE $build_flags -DGP_CUDA_ON_CPU \
            -I"$emulator" emulator_*.o "$@"
}

build() { # MODEL FOLDER PROGRAM OBJECT FLAGS...
    model=$1
    folder=$2
    program=$3
    object=$4
    shift 4
    capitals=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    grep -q "int ${model}_step(" "$folder/$model.h" && set -- "$@" -DTRAINS
    grep -q "int ${model}_forward(" "$folder/$model.h" && set -- "$@" -DFORWARD
    # shellcheck disable=SC2086
    g++ $cpp "-DMODEL=$model" "-DARENA=${capitals}_ARENA_BYTES" -include "$folder/$model.h" \
        -I"$here" "${main:-$here/drive.cpp}" "$object" "$@" -lm -o "$program"
}

# ---- Whole models beside the C program --------------------------------------------------------

# Both plans, both programs; then every way to run CUDA's gives the same bytes.
model() { # MODEL SOURCE TOLERANCE OPTIONS...
    model=$1
    source=$2
    tolerance=$3
    shift 3
    mkdir -p c cuda
    # shellcheck disable=SC2086
    "$gplan" "$source" "$@" --quiet -o "c/$model.c" &&
        "$gplan" "$source" "$@" --quiet -o "cuda/$model.cu" &&
        build_c "$model" c on_c && ./on_c "c/$model.dump" 4 plain &&
        build_cuda "$model" cuda on_cuda && ./on_cuda "cuda/$model.dump" 4 plain &&
        ./near "$tolerance" "c/$model.dump" "cuda/$model.dump" $without
}

# The program of the last model in other ways.
same() { # MODEL HOW ORDER [STREAMS]
    CUDA_ON_CPU_ORDER=$3 CUDA_ON_CPU_STREAMS=${4:-late} ./on_cuda other.dump 4 "$2" && cmp "cuda/$1.dump" other.dump
}

# Steps that nobody waits for: all but the losses.
silent() { # MODEL
    ./on_cuda silent.dump 4 silent && grep -v '^loss ' "cuda/$1.dump" | cmp - silent.dump
}

ways() { # MODEL
    check "$1 in descending order" same "$1" plain descending
    check "$1 in shuffled order" same "$1" plain shuffled shuffled
    check "$1 in memory of its own" same "$1" created ascending
    if grep -q "int $1_step(" "cuda/$1.h"; then
        check "$1 replayed" same "$1" replay ascending
        check "$1 replayed, shuffled" same "$1" replay shuffled shuffled
        check "$1 without waiting" silent "$1"
        check "$1 saved and loaded" same "$1" saved ascending
    fi
}

# Under the smallest budget there is, with all checks compiled in: the same bytes.
budget() { # MODEL SOURCE OPTIONS...
    model=$1
    source=$2
    shift 2
    mkdir -p tight
    set -- "$@" --accumulate 1 --slices never # those round in another way
    least=$("$gplan" "$source" "$@" --target cuda --quiet --min-budget) &&
        "$gplan" "$source" "$@" --quiet --budget "$least" -o "tight/$model.cu" &&
        grep -q "_ARENA_BYTES ${least}ull" "tight/$model.h" &&
        build_cuda "$model" tight on_less -DGPLAN_POISON -DGPLAN_CHECK_NAN -DGPLAN_PROFILE &&
        ./on_less tight.dump 4 plain && cmp "cuda/$model.dump" tight.dump &&
        ./on_less tight.dump 4 replay && cmp "cuda/$model.dump" tight.dump
}

check 'the emulator' emulate
check each model each "$here/each.g" 1e-6
ways each
loops() { grep '^chain ' c/each.dump >chain && grep '^chain ' cuda/each.dump | cmp - chain; }
check 'each: loops bit for bit' loops
check 'each: the same file' cmp c/each.dump.safetensors cuda/each.dump.safetensors

check 'mlp' model mlp "$examples/mlp.g" 1e-4 -D B=4 -D H=19
ways mlp
check 'lenet' model lenet "$examples/lenet.g" 1e-4 -D B=2
ways lenet
check 'lenet within a budget' budget lenet "$examples/lenet.g" -D B=2
# The gradient of a bias of keys is 0 but for rounding, of which adam makes a whole step.
without=.bk
gpt2='-D B=4 -D T=7 -D C=12 -D L=3 -D H=3 -D V=13'
# shellcheck disable=SC2086
{
    check 'gpt2' model gpt2 "$examples/gpt2.g" 1e-4 $gpt2
    ways gpt2
    check 'gpt2 within a budget' budget gpt2 "$examples/gpt2.g" $gpt2
    check 'gpt2 in slices' model gpt2 "$examples/gpt2.g" 1e-4 $gpt2 --slices always
    ways gpt2
    check 'gpt2 in micro-batches' model gpt2 "$examples/gpt2.g" 1e-4 $gpt2 --accumulate 2
    ways gpt2
}
without=
check 'batchnorm' model resnet "$train/resnet.g" 1e-4
ways resnet
check 'dropout' model dropout "$train/dropout.g" 1e-4 --accumulate 2
ways dropout

# ---- Whatever a model may have ----------------------------------------------------------------

compiles() { # MODEL
    # shellcheck disable=SC2086
    g++ $cpp -DGP_CUDA_ON_CPU -I"$emulator" -fsyntax-only -x c++ "$1.cu" &&
        g++ $cpp -DGP_CUDA_ON_CPU -I"$emulator" -DGPLAN_PROFILE -DGPLAN_POISON -DGPLAN_CHECK_NAN \
            -fsyntax-only -x c++ "$1.cu" &&
        gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c "$1.h"
}
whatever() {
    for name in external dtypes lookup; do # the caller's memory, every dtype, long constants
        options=$(sed -n 's/^# options: //p' "$emitted/$name.g")
        # shellcheck disable=SC2086
        "$gplan" "$emitted/$name.g" $options --quiet -o "any_$name.cu" &&
            compiles "any_$name" || return 1
    done
    "$gplan" "$train/resume.g" --io external --params external --quiet -o resume.cu &&
        compiles resume
}
check 'memory of the caller, dtypes, constants' whatever
verified() { "$gplan" "$examples/mlp.g" --target cuda -o plan.json && "$gplan" verify plan.json; }
check 'a plan for a GPU' verified
any_name() {
    for name in int m data place dim3 checked STATE float4 tell; do
        sed "s/^model files/model $name/" "$emitted/files.g" | "$gplan" - -o named.cu &&
            compiles named || return 1
    done
}
check 'any name' any_name

# ---- More than 32 bits count ------------------------------------------------------------------

big() {
    main=$here/big.cpp
    "$gplan" "$here/big.g" --quiet -o big.cu && grep -q 'flat / 1073741824;' big.cu &&
        build_cuda big . big && ./big
    status=$?
    main=
    return $status
}
check 'more than 2^32 bytes and 2^31 elements' big

# ---- What goes wrong --------------------------------------------------------------------------

errors() {
    main=$here/errors.cpp
    "$gplan" "$here/lookup.g" --quiet -o lookup.cu &&
        build_cuda lookup . errors -Wl,--wrap=pow && ./errors &&
        ./errors broken
    status=$?
    main=
    return $status
}
build_flags=$sanitize
check 'the emulator under the sanitizers' emulate
check 'errors' errors

# Each call in turn fails; the program says so, and names the op where it was one. Only calls that
# give something back are not looked at: two after a capture, four at the end.
each_call() {
    : >said
    number=1
    while CUDA_ON_CPU_FAIL=$number ./errors all >once &&
        [ "$(grep -c '^all is well' said)" -le 6 ]; do
        cat once >>said
        number=$((number + 1))
    done
    [ "$(grep -c '^all is well' said)" -eq 7 ] && grep -q '^a file cannot be' said &&
        grep -q 'failed in matmul .*lookup.g:.*product failed' said &&
        grep -q 'failed in .*too many resources requested' said &&
        grep -q '^CUDA or cuBLAS refused a call; unspecified' said &&
        echo "$number calls, each said to fail"
}
check 'every call fails once' each_call

check 'nvcc' "$here/nvcc.sh" "$gplan" some

finish
