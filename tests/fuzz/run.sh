#!/bin/sh
# Every door with the inputs that are kept for it, those of tests and examples, and some changes of
# both: tests/fuzz/run.sh path/to/gplan. `make fuzz` goes further.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
# shellcheck source=tests/fuzz/seeds.sh
. "$here/seeds.sh"
doors=$(dirname "$gplan")/tests/fuzz
cd "$work" || exit 1
export ASAN_OPTIONS=allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1

try() { # DOOR CHANGES
    seeds "$1" "seeds_$1"
    check "$1: $2 changed inputs" "$doors/$1_door" "$2" "$work/seeds_$1"/* ||
        head -c 2000 replay.input
}

try command 1000
try data 3000
try language 2000
try onnx 2000
try pack 5000
try profile 1000
try remat 3000
try safetensors 5000
try verify 1000
finish
