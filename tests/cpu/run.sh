#!/bin/sh
# Tries products and convolutions as every instruction set that this machine has computes them.
# usage: tests/cpu/run.sh [--bless] GPLAN (neither is needed: only kernels are compiled)
set -u
[ "$1" = --bless ] && exit 0 # nothing here is compared with a file
cd "$(dirname "$0")/../.." || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

# The same workspace for all: a plan does not know how the emitted file will be compiled.
try() { # REAL COMPILER FLAGS...
    real=$1
    shift
    label="$* $real"
    sizes=''
    if "$@" -std=c11 -O2 -D_POSIX_C_SOURCE=200809L -DGP_REAL="$real" -Wall -Wextra -Wpedantic \
        -Werror -I. tests/cpu/products.c -o "$folder/try" -lm >"$folder/log" 2>&1; then
        sizes=$("$folder/try" >"$folder/log" 2>&1 && tail -n 1 "$folder/log")
    fi
    [ -f "$folder/$real" ] || echo "$sizes" >"$folder/$real"
    if [ -n "$sizes" ] && [ "$sizes" = "$(cat "$folder/$real")" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$label: failed"
        cat "$folder/log"
    fi
}

sets='native'
[ "$(uname -m)" != x86_64 ] || sets='x86-64 native'
! grep -q ' avx2 ' /proc/cpuinfo 2>/dev/null || sets="$sets haswell"
for real in float double; do
    for set in $sets; do
        try $real gcc -fopenmp -march=$set
        ! command -v clang >/dev/null || try $real clang -march=$set
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
