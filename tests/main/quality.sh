#!/bin/sh
# Do models learn as well in 16 bits? fashion's CNN and the character GPT of examples, trained in
# f32, bf16 and f16 from the same seeds: their loss on held-out samples is at most 2 % above that
# of f32. usage: tests/main/quality.sh GPLAN [SEEDS]
# Takes some minutes; needs Debian's dataset-fashion-mnist and fortunes, and says so where they are
# missing.
set -u
gplan=$(realpath "$1")
seeds=${2:-'1 2 3'}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
worse=0

build() { # MODEL PRECISION
    mkdir -p "$1.$2" && (cd "$1.$2" &&
        "$gplan" "$root/examples/$1.g" --main --precision "$2" --threads 2 --quiet -o "$1.c" &&
        gcc -O2 -march=native -fopenmp "$1.c" "$1_main.c" -lm -o run)
}

held_out() { # MODEL PRECISION SEED STEPS: the loss
    (cd "$1.$2" && ./run train --steps "$4" --seed "$3" --eval 1000000 --schedule cosine \
        --save "$3.safetensors" --log "$3.csv" >said 2>&1 && ./run eval --load "$3.safetensors") |
        sed -n 's/.*loss \([0-9.]*\).*/\1/p' | tail -n 1
}

try() { # MODEL STEPS
    for precision in f32 bf16 f16; do
        build "$1" $precision || exit 1
    done
    for seed in $seeds; do
        f32=$(held_out "$1" f32 "$seed" "$2")
        for precision in bf16 f16; do
            narrow=$(held_out "$1" $precision "$seed" "$2")
            echo "$narrow $f32" | awk -v name="$1, seed $seed, $precision" '{
                share = NF == 2 && $2 > 0 ? $1 / $2 - 1 : 9
                worse = (share > 0.02)
                printf "%s: loss %s, %s in f32: %+.2f %%%s\n", name, $1, $2, 100 * share,
                       worse ? "  WORSE" : ""
                exit worse }' || worse=$((worse + 1))
        done
    done
}

if [ -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    try fashion 1200
else
    echo 'dataset-fashion-mnist is not installed: fashion was not trained'
fi
if [ -e /usr/share/games/fortunes/literature ]; then
    gcc -O2 "$root/examples/tokens.c" -o tokens && cat /usr/share/games/fortunes/fortunes \
        /usr/share/games/fortunes/literature /usr/share/games/fortunes/riddles >sayings &&
        ./tokens letters.bin sayings || exit 1
    for precision in f32 bf16 f16; do
        mkdir -p letters.$precision && ln -s ../letters.bin letters.$precision/
    done
    try letters 300
else
    echo 'fortunes are not installed: letters was not trained'
fi
if [ $worse -gt 0 ]; then
    echo "$worse worse"
    exit 1
fi
echo 'as good in 16 bits'
