#!/bin/sh
# A few random models, the same every time: tests/random/run.sh path/to/gplan. `make random-models`
# tries thousands.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$work" || exit 1
export ASAN_OPTIONS=detect_leaks=0
models=$(dirname "$gplan")/tests/random/random_models

some() { # FIRST COUNT [GCC_EVERY]
    check "random models $1 to $(($1 + $2 - 1))" "$models" "$gplan" "$@" || cat fault_*.g
}
some 1 5
some 6 5 7
some 11 5
finish
