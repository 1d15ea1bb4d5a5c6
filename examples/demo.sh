#!/bin/sh
# Plans a training step under a budget, compiles the C that comes out, trains with it for a few
# seconds, and measures.
# usage: examples/demo.sh path/to/gplan
set -eu
gplan=$1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
budget=7M  # for the whole process: code, stack and libraries take part of it
reserve=3M

echo "\$ gplan examples/lenet.g --threads 1 --budget $budget --reserve $reserve -o lenet.c --report"
"$gplan" "$here/lenet.g" --threads 1 --budget "$budget" --reserve "$reserve" --report -o "$work/lenet.c"

echo
echo "\$ cc -O3 -march=native lenet.c demo.c -lm -o demo && ./demo $budget"
${CC:-cc} -O3 -march=native -I"$work" "$work/lenet.c" "$here/demo.c" -lm -o "$work/demo"
"$work/demo" "$budget"

echo
echo '$ gplan examples/lenet.g --threads 1 --budget 1M     # what does not fit is an answer'
"$gplan" "$here/lenet.g" --threads 1 --budget 1M || true
