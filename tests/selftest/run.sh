#!/bin/sh
# The self-test for a GPU, compiled for the CPU: tests/selftest/run.sh gplan
# It must find that some ops agree, and notice when a kernel goes wrong.
set -u
[ "$1" = --bless ] && exit 0 # nothing here is compared with a file
cd "$(dirname "$0")/../.." || exit 1
selftest=$(dirname "$1")/selftest/on_cpu
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0
failed=0

expect() { # STATUS NAME OP...
    status=$1
    name=$2
    shift 2
    "$selftest" "$@" >"$log" 2>&1
    got=$?
    if [ "$got" -eq "$status" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $name: status $got, expected $status"
        tail -n 20 "$log"
    fi
}

expect 0 'ops agree' add softmax global_avgpool cumsum conv1d dropout adam
line=$(grep -n '__syncthreads()' runtime/cuda/base.cuh | head -n 1 | cut -d: -f1)
export CUDA_ON_CPU_SKIP="base.cuh:$line"
expect 1 'a kernel without a barrier differs' softmax
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
