#!/bin/sh
# Tiny models trained beside references in double, a part of tests/train/run.sh that is quick, compiled
# with tcc: tests/mutants/trained.sh GPLAN
set -u
gplan=$PWD/$1
train=$PWD/tests/train
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

reference() { # MODEL SOURCE OPTIONS ARGUMENTS...
    model=$1
    source=$2
    options=$3
    shift 3
    capitals=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    # shellcheck disable=SC2086
    "$gplan" "$source" $options --quiet -o "$model.c" &&
        tcc -w -D_GNU_SOURCE "-DMODEL=$model" "-DARENA=${capitals}_ARENA_BYTES" -include "$model.h" \
            -I. -I"$train" "$train/$model.c" "$model.c" -lm -o "$model" &&
        timeout 60 "./$model" "$@" || exit 1
}

optimizer() { # STATEMENT OPTIONS ARGUMENTS...
    sed "s/OPTIMIZER/$1/" "$train/tiny.g" >tiny.g
    options=$2
    shift 2
    reference tiny tiny.g "$options" "$@" tolerance=1e-6
}

optimizer 'sgd(lr = 0.2) { clip = 0.1 }' '--accumulate 4' sgd lr=0.2 clip=0.1 valid=5
optimizer 'adam(lr = 0.02, beta1 = 0.8, weight_decay = 0.1) { group "*.b" { lr = 0.005 } }' \
    '--accumulate 2' adam lr=0.02 beta1=0.8 weight_decay=0.1 'group=*.b' lr=0.005 valid=5
optimizer 'sgd(lr = 0.2) { schedule = cosine(steps = 8, warmup = 3, floor = 0.1) }' '' \
    sgd lr=0.2 schedule=cosine steps=8 warmup=3 floor=0.1
optimizer 'sgd(lr = 0.2) { schedule = step(every = 3, factor = 0.5, warmup = 2) }' '' \
    sgd lr=0.2 schedule=step every=3 factor=0.5 warmup=2
optimizer 'rmsprop(lr = 0.01, alpha = 0.9, momentum = 0.7, weight_decay = 0.1)' '' \
    rmsprop lr=0.01 alpha=0.9 momentum=0.7 weight_decay=0.1
optimizer 'lion(lr = 0.003, weight_decay = 0.5)' '' lion lr=0.003 weight_decay=0.5
reference gpt2 "$train/../../examples/gpt2.g" \
    '-D B=3 -D T=7 -D C=12 -D L=2 -D H=3 -D V=13 --chunked-loss always' adamw lr=3e-4 weight_decay=0.1 clip=1
reference resnet "$train/resnet.g" '' sgd lr=0.05 momentum=0.9 weight_decay=1e-3 tolerance=1e-5
reference special "$train/special.g" '--accumulate 3' \
    sgd lr=0.05 group=k frozen=1 group=still frozen=1 valid=4
