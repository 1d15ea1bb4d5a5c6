#!/bin/sh
# The programs of tests/kernels that include a header of the runtime, those with the fewest headers
# first: with tiny blocks, then with those of users. usage: tests/mutants/kernels.sh HEADER. Ends with
# 0 where no program includes it, and after 14 seconds: other suites have the rest of a mutant's time.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for program in tests/kernels/*.c; do
    gcc -MM -I. -Ibuild/gen "$program" | tr -s ' \\' '\n' >"$work/headers"
    ! grep -qx "$1" "$work/headers" || echo "$(wc -l <"$work/headers") $program"
done | sort -n | sed 's/.* //' >"$work/programs"
set=''
[ "$(uname -m)" != x86_64 ] || set=-march=x86-64
for kind in "-DGP_TINY=1 -O1 $set" '-O1 -march=native'; do
    while read -r program; do
        # shellcheck disable=SC2086
        gcc $kind -w -Werror=int-conversion -Werror=incompatible-pointer-types -std=c11 -fopenmp \
            -D_POSIX_C_SOURCE=200809L -I. -Ibuild/gen "$program" -o "$work/try" -lm &&
            timeout 120 "$work/try" || exit 1
        times >"$work/times" # of what ran, in its last line: 0m1.5s 0m0.2s
        tail -n 1 "$work/times" | tr 'ms' '  ' |
            awk '{ exit 60 * ($1 + $3) + $2 + $4 < 14 }' && exit 0
    done <"$work/programs"
done
