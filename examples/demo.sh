#!/bin/sh
# Plans a training step under a budget, compiles the C that comes out, trains with it, and measures:
# on the pictures of Debian's dataset-fashion-mnist where they are there, else on digits that are
# drawn.
# usage: examples/demo.sh path/to/gplan
set -eu
gplan=$1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    echo '$ gplan run examples/fashion.g --budget 64M -k . -- train --epochs 3 --schedule cosine'
    "$gplan" run "$here/fashion.g" --budget 64M -k "$work" -- train --epochs 3 --schedule cosine \
        --report 200 --save "$work/fashion.safetensors"
    echo
    echo '$ ./fashion eval     # 10,000 pictures that it has not seen'
    "$work/fashion" eval --load "$work/fashion.safetensors"
    echo
    echo '$ gplan examples/fashion.g --budget 1M     # what does not fit is an answer'
    "$gplan" "$here/fashion.g" --budget 1M || true
    exit
fi

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
