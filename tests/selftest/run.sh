#!/bin/sh
# The self-test for a GPU, compiled for the CPU: tests/selftest/run.sh gplan
# It must find that all ops agree, and notice when a kernel goes wrong.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
selftest=$(dirname "$gplan")/selftest/on_cpu

ends() { # STATUS COMMAND...
    status=$1
    shift
    "$@"
    [ $? -eq "$status" ]
}

check 'ops agree' "$selftest"
check 'products of bf16 where cuBLAS has none' env CUDA_ON_CPU_OLD=1 "$selftest" matmul dense
line=$(grep -n '__syncthreads()' "$root/runtime/cuda/base.cuh" | head -n 1 | cut -d: -f1)
export CUDA_ON_CPU_SKIP="base.cuh:$line"
check 'a kernel without a barrier differs' ends 1 "$selftest" softmax
finish
