#!/bin/sh
# Changed models against gplan: tests/fuzz/run.sh path/to/gplan [SECONDS [FIRST_SEED]]
# What fails is left as build/fuzz/fuzz_SEED.g.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
mkdir -p "$root/build/fuzz" && cd "$root/build/fuzz" || exit 1
export ASAN_OPTIONS=detect_leaks=0:hard_rss_limit_mb=4000

cc -std=c11 -O1 -Wall -Wextra "$here/fuzz.c" -o fuzz || exit 1
"$gplan" --ops | sed -n 's/^| `\([a-z_0-9]*\)(\(.*\))` .*/\1 \2/p' | tr -c 'a-z_0-9' ' ' >words
# Models with every kind of statement, small enough to plan in a moment.
./fuzz "$gplan" "${2:-15}" "${3:-0}" words "$here"/*.g "$root"/tests/language/[!e]*.g \
    "$root"/examples/mlp.g "$root"/examples/lenet.g
count 'changed models' $?
finish
