#!/bin/sh
# Changed models against gplan: tests/fuzz/run.sh path/to/gplan [SECONDS [FIRST_SEED]]
# What fails is left as build/fuzz/fuzz_SEED.g.
set -u
[ "$1" = --bless ] && exit 0 # nothing here is compared with a file
gplan=$1
case $gplan in /*) ;; *) gplan=$PWD/$gplan ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
mkdir -p "$root/build/fuzz" && cd "$root/build/fuzz" || exit 1
export ASAN_OPTIONS=detect_leaks=0:hard_rss_limit_mb=4000

cc -std=c11 -O1 -Wall -Wextra "$here/fuzz.c" -o fuzz || exit 1
"$gplan" --ops | sed -n 's/^| `\([a-z_0-9]*\)(\(.*\))` .*/\1 \2/p' | tr -c 'a-z_0-9' ' ' >words
# Models with every kind of statement, small enough to plan in a moment.
./fuzz "$gplan" "${2:-15}" "${3:-0}" words "$here"/*.g "$root"/tests/language/[!e]*.g \
    "$root"/examples/mlp.g "$root"/examples/lenet.g
status=$?
echo "$((1 - status)) passed, $status failed"
exit $status
