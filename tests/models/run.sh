#!/bin/sh
# Whole models. usage: tests/models/run.sh [--bless] GPLAN
# Every example is planned at its full size, has the parameters that the literature gives it, and
# compiles without a warning; shrunk, it runs under the sanitizers. mlp, lenet and gpt2 are also
# compared with a computation of their own.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$root" || exit 1
tmp=$work
warnings='-std=c11 -Wall -Wextra -Wpedantic -Werror'
sanitize='-fsanitize=address,undefined -fno-sanitize-recover=undefined'

count_parameters() { # MODEL COUNT
    got=$("$gplan" "examples/$1.g" --infer -d lower | awk '$3 == "param" {
        sub(/.*\[/, ""); sub(/\].*/, ""); n = split($0, dim, ", "); c = 1
        for (i = 1; i <= n; i++) c *= dim[i]
        sum += c } END { printf "%d", sum }')
    [ "$got" = "$2" ] || { echo "$1 has $got parameters, not $2"; return 1; }
}

emit() { # MODEL OPTIONS...: into $tmp/MODEL
    model=$1
    shift
    rm -rf "${tmp:?}/$model"
    mkdir -p "$tmp/$model" && "$gplan" "examples/$model.g" --infer "$@" --quiet -o "$tmp/$model/$model.c"
}

build() { # MODEL PROGRAM OUT FLAGS...
    model=$1
    program=$2
    out=$3
    shift 3
    capitals=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    gcc $warnings -g -O0 $sanitize -c "$tmp/$model/$model.c" -o "$out.o" &&
        gcc $warnings -g -O0 $sanitize "-DMODEL=$model" "-DARENA=${capitals}_ARENA_BYTES" \
            -include "$tmp/$model/$model.h" "$@" "tests/models/$program.c" "$out.o" -o "$out" -lm
}

# Full size: planned and reported; the parameters counted; the C compiles.
for line in mlp:269322 lenet:61706 resnet50:25557032 mobilenetv2:3504872 unet:31037633 \
    vgg16:138357544 densenet121:7978856 inception:6998552 bert:109483778 gpt2:124439808 \
    lstm:574560 oom_a:83559626 oom_b:79680650 oom_c:18305290 oom_d:510; do
    model=${line%:*}
    check "$model plans" "$gplan" "examples/$model.g" --infer --report
    check "$model has its parameters" count_parameters "$model" "${line#*:}"
    check "$model emits" emit "$model" &&
        check "$model compiles" gcc $warnings -O1 -fsyntax-only "$tmp/$model/$model.c"
done

# Small: runs clean.
small() { # MODEL OPTIONS...
    model=$1
    check "$model emits small" emit "$@" &&
        check "$model builds small" build "$model" any "$tmp/$model/any" &&
        check "$model runs" timeout 900 "$tmp/$model/any"
}
small resnet50 -D B=1 -D S=32 -D W=4 -D K=10
small mobilenetv2 -D B=1 -D S=32 -D K=10
small unet -D B=1 -D S=32 -D W=4
small vgg16 -D B=1 -D S=32 -D W=2 -D F=32 -D K=10
small densenet121 -D B=1 -D S=32 -D G=4 -D K=10
small inception -D B=1 -D S=32 -D K=10
small bert -D B=2 -D T=7 -D C=12 -D L=2 -D H=3 -D V=11 -D P=9
small lstm -D B=2 -D T=5 -D C=6 -D V=9
small oom_a -D B=2 -D S=12 -D W=3
small oom_b -D B=2 -D S=11 -D W=3
small oom_c -D B=1 -D S=8 -D W=2
small oom_d -D B=3

# The right numbers.
right() { # MODEL FLAGS OPTIONS...
    model=$1
    flags=$2
    shift 2
    check "$model emits" emit "$model" "$@" &&
        check "$model builds" build "$model" "$model" "$tmp/$model/right" $flags &&
        check "$model computes the right numbers" timeout 900 "$tmp/$model/right" &&
        cat "$tmp/log"
}
right mlp -DMLP_H_SIZE=19 -D B=5 -D H=19
right lenet '' -D B=3
right gpt2 '' -D B=2 -D T=9 -D C=16 -D L=2 -D H=4 -D V=37

finish
