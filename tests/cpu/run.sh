#!/bin/sh
# Tries the kernels and functions whose code differs from instruction set to instruction set, for
# each that this machine has or can imitate, then a whole model. usage: tests/cpu/run.sh GPLAN
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$root" || exit 1
folder=$work

# The last line is the same for all: workspace, since a plan does not know how the emitted file
# will be compiled.
try() { # PROGRAM REAL COMPILER FLAGS...
    program=$1
    real=$2
    shift 2
    last=''
    if "$@" -std=c11 -O3 -D_POSIX_C_SOURCE=200809L -DGP_REAL="$real" -Wall -Wextra -Wpedantic \
        -Werror -I. -Ibuild/gen "tests/cpu/$program.c" -o "$folder/try" -lm >"$folder/log" 2>&1; then
        last=$("$folder/try" >"$folder/log" 2>&1 && tail -n 1 "$folder/log")
    fi
    [ -f "$folder/$program.$real" ] || echo "$last" >"$folder/$program.$real"
    [ -n "$last" ] && [ "$last" = "$(cat "$folder/$program.$real")" ]
    count "$program $real $*" $?
}

sets='native'
[ "$(uname -m)" != x86_64 ] || sets='x86-64 native'
! grep -q ' avx2 ' /proc/cpuinfo 2>/dev/null || sets="$sets x86-64-v3"
compilers='gcc'
! command -v clang >/dev/null || compilers='gcc clang'
for set in $sets; do
    for compiler in $compilers; do
        threads=-fopenmp
        [ $compiler = gcc ] || threads=-O3
        try math float $compiler -march="$set"
        try products float $compiler -march="$set" $threads
        try pools float $compiler -march="$set" $threads
        [ $compiler = gcc ] || continue # of double are the tests of gradients alone
        try products double $compiler -march="$set" $threads
        try pools double $compiler -march="$set" $threads
    done
done
try math float gcc -march=native -ffp-contract=off

# The kernels for a compiler without the extensions of gcc: their text, with the question renamed.
mkdir -p "$folder/plain/runtime/c"
for file in runtime/c/*.h; do
    sed 's/__GNUC__/GP_NO_SUCH_COMPILER/g' "$file" >"$folder/plain/$file"
done
try products float gcc "-I$folder/plain"

# The emitted file of one model, compiled for each: the results agree.
whole() { # RUNNER COMPILER FLAGS...
    runner=$1
    shift
    if "$@" -std=c11 -O3 -Wall -Wextra -Wpedantic -Werror -D_POSIX_C_SOURCE=200809L "-I$folder" \
        tests/cpu/portable.c "$folder/portable.c" -o "$folder/whole" -lm >"$folder/log" 2>&1 &&
        $runner "$folder/whole" "$folder/numbers" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: a whole model, $*"
        cat "$folder/log"
    fi
}

if "$gplan" tests/cpu/portable.g --quiet -o "$folder/portable.c"; then
    for set in $sets; do
        for compiler in $compilers; do
            whole '' $compiler -march="$set"
        done
    done
    whole '' gcc -march=native -fopenmp
    if command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null; then
        whole qemu-aarch64 aarch64-linux-gnu-gcc -static
    else
        echo 'no aarch64: it takes qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross'
    fi
else
    failed=$((failed + 1))
fi
finish
