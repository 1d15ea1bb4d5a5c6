#!/bin/sh
# Plans a model under a budget, compiles the C that comes out, runs it, and measures it.
# usage: examples/demo.sh path/to/gplan
set -eu
gplan=$1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
budget=48M

echo "\$ gplan examples/lenet.g -D B=64 --budget $budget -o lenet.c --report"
"$gplan" "$here/lenet.g" -D B=64 --budget "$budget" --report -o "$work/lenet.c"

echo
echo '$ cc -O3 -march=native -fopenmp lenet.c demo.c -lm && ./demo'
${CC:-cc} -O3 -march=native -fopenmp -I"$work" "$work/lenet.c" "$here/demo.c" -lm -o "$work/demo"
"$work/demo"

echo
echo '$ gplan examples/lenet.g -D B=64 --budget 1M     # what does not fit is an answer'
"$gplan" "$here/lenet.g" -D B=64 --budget 1M || true
