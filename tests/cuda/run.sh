#!/bin/sh
# Emitted CUDA, run on the CPU by tests/cuda_on_cpu beside the emitted C: tests/cuda/run.sh gplan
# Whole models must compute what the C program does, whatever the order of threads, within a
# budget or not, step by step or replayed: beside.sh, which gpu.sh runs on a GPU. With nvcc on the
# machine a few are compiled with it too; `make cuda-check` takes them all.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
emitted=$root/tests/emit
emulator=$root/tests/cuda_on_cpu
cd "$work" || exit 1
loud=yes
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

device_object() { # SOURCE OBJECT FLAGS...
    source=$1
    object=$2
    shift 2
    # shellcheck disable=SC2086
    g++ $cpp $build_flags -DGP_CUDA_ON_CPU -I"$emulator" "$@" -x c++ -c "$source" -o "$object"
}

device_program() { # PROGRAM FLAGS...
    program=$1
    shift
    # shellcheck disable=SC2086
    g++ $cpp $build_flags -DGP_CUDA_ON_CPU -I"$emulator" "$@" emulator_*.o -lm -o "$program"
}

orders='descending shuffled' # of threads and blocks
tolerance=
# shellcheck source=tests/cuda/beside.sh
. "$here/beside.sh"

check 'the emulator' emulate
whole_models

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

# ---- Data -------------------------------------------------------------------------------------

fed_on_host() { # OPTIONS...
    "$gplan" net.g "$@" --quiet -o net.c && gcc -std=c11 -O1 -ffp-contract=off -c net.c -o c.o &&
        host_program reader.host -I. "$here/feed.cpp" c.o -pthread &&
        ./reader.host 40 plain host.st >host.out
}

# Whether copies are early or late, each step has its own samples, and a run that is loaded the next.
fed_on_device() { # OPTIONS...
    "$gplan" net.g --target cuda "$@" --emit json >net.json && "$gplan" verify net.json &&
        "$gplan" net.g "$@" --quiet -o net.cu && device_object net.cu cu.o &&
        device_program reader -DON_DEVICE -I. "$here/feed.cpp" cu.o -pthread || return 1
    for streams in late shuffled; do
        for how in plain replay silent; do
            CUDA_ON_CPU_STREAMS=$streams ./reader 40 $how "$how.st" >$how.out &&
                { [ $how = plain ] || cmp plain.st "$how.st"; } || return 1
        done
        ./near 1e-4 host.out plain.out && cmp plain.out replay.out || return 1
    done
    ./reader 23 replay half.st >half.out && ./reader 40 replay resumed.st half.st >>half.out &&
        cmp plain.out half.out && cmp plain.st resumed.st
}

fed() {
    gcc -O1 "$root/tests/feed/files.c" -o files && ./files . || return 1
    sed 's|^FORMAT|data train = idx("x-idx3", "y-idx1", flip = true, split = 0.2) -> x, y|' \
        "$root/tests/feed/images.g" >net.g
    least=$("$gplan" net.g --target cuda --min-budget --accumulate 4)
    fed_on_host && fed_on_device && grep -q 'define COPIED_TO (READ_AT + ' net.cu &&
        fed_on_host --accumulate 4 && fed_on_device --accumulate 4 && grep -q 'slot = 4,' net.cu &&
        fed_on_device --accumulate 4 --budget "$least" && grep -q 'define COPIED_TO READ_AT' net.cu
}
check 'data on the way to the device' fed

fed_from() { "$gplan" "$root/tests/feed/$1.g" -o fed.cu && compiles fed; }
check 'data from tokens' fed_from tokens
check 'data from images' fed_from photos

# ---- Ranks ------------------------------------------------------------------------------------

# shellcheck source=tests/cuda/ranks.sh
. "$here/ranks.sh"
nccl

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
        ! grep -q 'when stream is capturing' said &&
        grep -q '^CUDA or cuBLAS refused a call; unspecified' said &&
        echo "$number calls, each said to fail"
}
check 'every call fails once' each_call

check 'nvcc' "$here/nvcc.sh" "$gplan" some

finish
