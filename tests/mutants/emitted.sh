#!/bin/sh
# A model of tests/emit, emitted, compiled and run: tests/mutants/emitted.sh GPLAN MODEL...
set -u
gplan=$PWD/$1
emit=$PWD/tests/emit
shift
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for model in "$@"; do
    # tcc takes no time; a model that wants flags of the linker is for gcc
    flags=$(sed -n 's/^ \* flags: //p' "$emit/$model.c")
    compiler=tcc
    [ -z "$flags" ] || compiler='gcc -O1'
    # shellcheck disable=SC2046,SC2086
    "$gplan" "$emit/$model.g" $(sed -n 's/^# options: //p' "$emit/$model.g") --quiet -o "$model.c" &&
        $compiler -w -D_GNU_SOURCE -DGPLAN_POISON -I. -I"$emit" "$emit/$model.c" "$model.c" $flags \
            -pthread -lm -o "$model" && timeout 60 "./$model" || exit 1
done
