#!/bin/sh
# Tries every kernel against plain loops: each program of this folder with tiny block sizes, under
# the sanitizers, and with those of users, compiled as users do. A program has cases next to every
# block size of the headers that it includes. usage: tests/kernels/run.sh GPLAN
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$root" || exit 1

headers_of() { # PROGRAM.c...: the headers of the runtime that it includes
    gcc -MM -I. -Ibuild/gen "$@" | tr -s ' \\\n' '\n' | grep '^runtime/c/' | sort -u
}
headers_of tests/kernels/*.c tests/ranks/engine.c tests/ranks/shards.c >"$work/included"

grep -l 'GP_KERNEL(' runtime/c/*.h | grep -v '/base.h' | grep -vxFf "$work/included" >"$log"
[ ! -s "$log" ]
count 'every kernel has a program' $?

# Constants of the kernels that are no size which work is cut by, and why.
constants='
GP_TINY GP_MAX_RANK GP_LARGEST GP_OK GP_EINDEX GP_ENAN GP_EDEVICE GP_ERANK GP_TAG_ALARM GP_TAG_PART: names for numbers
GP_TAKEN GP_PASSED GP_MAX_WAYS: names for numbers
GP_VECTOR_BYTES GP_LANES GP_NR GP_MR: by the instruction set; all programs with products cross them
GP_NR_LARGEST GP_MR_LARGEST GP_WINO_GAP GP_WINO_ROWS: room in workspace
GP_CODED_BLOCK GP_CODES GP_DECADES GP_CODED_LANES: of codes that are stored
GP_WINO GP_WEIGHT_PARTS: how many there are, whatever the size
GP_EVENS GP_ODDS GP_EVENS_4 GP_ODDS_4 GP_BEFORE GP_AFTER GP_LOW_PAIRS GP_HIGH_PAIRS: lists
GP_AHEAD GP_STREAM_AHEAD GP_POOL_SOON GP_POOL_LATER: how far ahead memory is asked for
GP_UPDATE_LARGE: from where on there are threads
GP_SAMPLES_INS GP_SAMPLES_OUTS GP_HALF_ROWS: room for as many
GP_SAMPLES_SMALL: planes that are copied in one go
GP_RANKS_PIECE GP_RANKS_HEAD GP_RANKS_OWN GP_RANKS_SLOTS GP_RANKS_AWAY GP_RANKS_SENDS: room; tests/ranks
GP_RANKS_TEXT GP_TAGS: room as well
GP_SUM_ADDS GP_SUM_ON GP_SUM_SPREADS GP_SUM_APART: names for bits
GP_CLIP_CHUNK: where shards are cut, and a norm, whatever the size; tests/ranks/shards.c
'
named=$(echo "$constants" | sed 's/:.*//')
unknown() {
    xargs grep -ohE '(#define GP_[A-Z0-9_]+ \(?[0-9]|GP_[A-Z0-9_]+ = \(?[0-9])' <"$work/included" |
        grep -oE 'GP_[A-Z0-9_]+' | sort -u | while read -r name; do
        case " $(echo "$named" | tr '\n' ' ') " in
        *" $name "*) ;;
        *) echo "$name: a block size is GP_BLOCK(usual, tiny); anything else is named in $0" ;;
        esac
    done
}
unknown >"$log"
[ ! -s "$log" ]
count 'every constant is a block size or said not to be' $?

# Block sizes of some headers, by name; each stands on one line with its GP_BLOCK.
sizes_of() { # FILE...
    grep -ohE 'GP_[A-Z0-9_]+ (= )?GP_BLOCK\(' "$@" | grep -oE '^GP_[A-Z0-9_]+' | sort -u
}
[ "$(grep -h 'GP_BLOCK(' runtime/c/*.h | grep -v '#define GP_BLOCK' | grep -o 'GP_BLOCK(' | wc -l)" = \
    "$(grep -ohE 'GP_[A-Z0-9_]+ (= )?GP_BLOCK\(' runtime/c/*.h | wc -l)" ]
count 'every block size has a name' $?

# Every size of the program's headers is crossed, or said to be another program's matter.
crosses() { # PROGRAM OUTPUT
    # shellcheck disable=SC2046
    for name in $(sizes_of $(headers_of "tests/kernels/$1.c")); do
        grep -qx "crossed $name" "$2" || grep -qx "elsewhere $name" "$2" ||
            echo "$1: no case lies below, at and above $name"
    done
}

try() { # PROGRAM KIND FLAGS...
    program=$1
    kind=$2
    shift 2
    gcc "$@" -std=c11 -fopenmp -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror -I. \
        -Ibuild/gen "tests/kernels/$program.c" -o "$work/try" -lm >"$log" 2>&1 &&
        "$work/try" >"$work/$program.$kind" 2>"$log"
    status=$?
    grep '^wrong' "$work/$program.$kind" >>"$log"
    count "$program, $kind blocks" $status || return
    crosses "$program" "$work/$program.$kind" >"$log"
    [ ! -s "$log" ]
    count "$program, $kind blocks: every size is crossed" $?
}

set=''
[ "$(uname -m)" != x86_64 ] || set=-march=x86-64
for file in tests/kernels/*.c; do
    program=$(basename "$file" .c)
    # shellcheck disable=SC2086
    try "$program" tiny -DGP_TINY=1 -O1 $set -fsanitize=address,undefined \
        -fno-sanitize-recover=undefined
    try "$program" usual -O3 -march=native
done

# A size that only others cross is nobody's.
sizes_of runtime/c/*.h | while read -r name; do
    cat "$work"/*.usual | grep -qx "crossed $name" || echo "$name is crossed nowhere"
done >"$log"
[ ! -s "$log" ]
count 'every block size is crossed somewhere' $?
finish
