#!/bin/sh
# Emitted text, to the last byte: what gplan writes of MODEL.g is MODEL.KIND.txt. Without lines
# that stand in runtime/, so that a kernel may change. usage: run.sh [--bless] GPLAN
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
cd "$here" || exit 1
cat "$root"/runtime/c/*.h "$root"/runtime/cuda/*.h "$root"/runtime/cuda/*.cuh >"$work/kernels"

golden() { # TEXT MODEL OPTIONS...
    text=$1
    shift
    "$gplan" "$@" --quiet >"$work/whole" &&
        grep -vxFf "$work/kernels" "$work/whole" >"$work/written" || return 1
    [ -z "$bless" ] || cp "$work/written" "$text.txt"
    diff -u "$text.txt" "$work/written"
}
check 'C as it was written' golden written.c written.g --accumulate 2 --emit c
check 'the header as it was written' golden written.h written.g --accumulate 2 --emit h
check 'CUDA as it was written' golden written.cu written.g --emit cu
check 'C of memory of the caller' golden external.c written.g --infer --io external --params external --emit c
check 'its header' golden external.h written.g --infer --io external --params external --emit h
check 'iterations of a loop' golden turns.c turns.g --emit c

# A comment goes with what it speaks of: one that stands alone, or before an include that is gone, does
# so in runtime/ too.
before() { # LINE FILE...: comments before such a line
    awk -v line="$1" 'BEGIN { ARGV[1] = "" } last ~ /\*\/$/ && $0 ~ line { print last } { last = $0 }' "$@" |
        sort -u
}
comments() {
    before '^(#|$)' "$root"/runtime/c/*.h "$root"/runtime/cuda/*.h "$root"/runtime/cuda/*.cuh >"$work/may"
    for kind in c cu; do
        "$gplan" written.g --quiet --emit $kind | sed '1,/^.. ---- Kernels/d; /^.. ---- Ops/,$d' | before '^$' |
            comm -23 - "$work/may" >"$work/left" && cat "$work/left" && [ ! -s "$work/left" ] || return 1
    done
}
check 'no comment without what it speaks of' comments
finish
