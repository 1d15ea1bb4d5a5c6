#!/bin/bash
# tests/same/compare.sh GPLAN REVISION [EXAMPLE...]: builds gplan as it was at REVISION, and compares
# what tests/same/same.sh prints of both. Ends with 1 where anything differs.
set -eu
gplan=$1
revision=$2
shift 2
cd "$(dirname "$0")/../.."
commit=$(git rev-parse --short "$revision^{commit}")
base=build/same/$commit
if [ ! -x "$base/gplan" ]; then
    mkdir -p "$base"
    git archive "$commit" | tar -x -C "$base"
    env -u MAKEFLAGS -u MAKELEVEL make -s -C "$base" -j2 gplan
fi
tests/same/same.sh "$base/gplan" "$@" >"$base/table"
tests/same/same.sh "$gplan" "$@" >build/same/table
if diff "$base/table" build/same/table; then
    echo "$(wc -l <build/same/table) lines are those of $commit"
else
    echo "not those of $commit"
    exit 1
fi
