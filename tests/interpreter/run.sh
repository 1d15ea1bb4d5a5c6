#!/bin/sh
# Every example against the interpreter: its forward pass, its loss, and one step of training, as
# emitted C that is compiled as users do. usage: tests/interpreter/run.sh GPLAN [full] [EXAMPLE...]
#
# Channels, features, heads and classes are the example's own; images and texts are smaller here, and
# equal layers fewer. `full` takes them as they are, for a batch of one or two (unet's images have a
# quarter of the places), and each example also within the smallest budget: `make check-examples`.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$root" || exit 1
interpreter=$(dirname "$gplan")/tests/interpreter/interpreter
export OMP_WAIT_POLICY=passive
loud=yes

fault='' # for sed: what is put into the emitted C

# NAME.so in $work: the model with these options, under names that are the same for all.
build() { # NAME MODEL.g OPTIONS...
    to=$work/$1
    file=$2
    model=$(basename "$2" .g)
    shift 2
    capitals=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    mkdir -p "$to" &&
        "$gplan" "$file" --threads 2 --quiet "$@" -o "$to/$model.c" &&
        sed -i "$fault" "$to/$model.c" &&
        gcc -std=c11 -O3 -march=native -fopenmp -fPIC -c "$to/$model.c" -o "$to/model.o" &&
        gcc -std=c11 -O1 -fPIC -I. "-DMODEL=$model" "-DARENA=${capitals}_ARENA_BYTES" \
            -include "$to/$model.h" -c tests/interpreter/subject.c -o "$to/subject.o" &&
        gcc -shared -fopenmp "$to/model.o" "$to/subject.o" -o "$to.so" -lm
}

# The defines stand last, and are the interpreter's too.
compare() { # MODEL "OPTIONS OF THE INTERPRETER" "OPTIONS OF THE PLAN" -D NAME=N...
    text=examples/$1.g
    how=$2
    plan=$3
    example=$1
    shift 3
    case $how in *--unclipped*)
        how=${how#--unclipped}
        sed 's/clip = [0-9.]*/clip = 1000000.0/' "$text" >"$work/$example.g"
        text=$work/$example.g
        ;;
    esac
    build "$example" "$text" $plan "$@" && "$interpreter" "$text" "$@" $how "$work/$example.so"
}

# Probabilities a ten-thousandth too large are more than logits within 1e-5 can make them.
finds_wrong_probabilities() {
    fault='s|scale = 1 / sum;|scale = 1.0001f / sum;|'
    build mlp examples/mlp.g -D B=2 && grep -q '1.0001f / sum' "$work/mlp/mlp.c" || return 1
    fault=''
    "$interpreter" examples/mlp.g -D B=2 "$work/mlp.so" >"$work/found" && return 1
    grep 'probs .* WRONG' "$work/found"
}

full=''
[ "${2:-}" != full ] || full=yes
shift
[ -z "$full" ] || shift
wanted=" $* "

run() { # MODEL ...: as for compare, where it was asked for
    case $wanted in *" $1 "* | '  ') check "$1" compare "$@" ;; esac
}

if [ -z "$full" ]; then
    [ "$wanted" != '  ' ] || check finds_wrong_probabilities finds_wrong_probabilities
    run mlp '--steps 2' '' -D B=2
    run lenet '--steps 2' '' -D B=2
    run oom_d '--steps 2' '' -D B=2
    run oom_a '' '' -D B=1 -D S=96
    run oom_b '' '--accumulate 2' -D B=2 -D S=62
    run oom_c '' '' -D B=1 -D S=16
    run lstm '--steps 2' '' -D B=2 -D T=6
    run gpt2 '--unclipped' '--accumulate 2 --chunked-loss always' -D B=2 -D T=40 -D L=2 -D V=5003
    run bert '' '' -D B=2 -D T=40 -D L=2 -D V=5003
    run resnet50 '' '' -D B=2 -D S=96
    run mobilenetv2 '' '' -D B=2 -D S=128
    run densenet121 '' '' -D B=2 -D S=96
    run inception '' '' -D B=1 -D S=64
    run vgg16 '' '' -D B=1 -D S=32
    run unet '' '' -D B=2 -D S=48
    finish
    exit
fi

# As they are: with all the memory a plan likes, and with the least there is.
whole() { # MODEL "OPTIONS OF THE INTERPRETER" -D NAME=N...
    text=examples/$1.g
    how=$2
    example=$1
    shift 2
    least=$("$gplan" "$text" --threads 2 --min-budget "$@" | head -n 1) &&
        build "$example" "$text" "$@" &&
        build "${example}_least" "$text" --budget "$least" "$@" &&
        "$interpreter" "$text" "$@" $how "$work/$example.so" "$work/${example}_least.so"
}

full() {
    case $wanted in *" $1 "* | '  ') check "$1" whole "$@" ;; esac
}

full mlp '--steps 2'
full lenet '--steps 2'
full oom_d '--steps 2'
full oom_a '' -D B=1
full oom_b '' -D B=1
full oom_c '' -D B=1
full lstm '--steps 2' -D B=2
full bert '' -D B=2
full gpt2 '' -D B=1
full resnet50 '' -D B=2
full mobilenetv2 '' -D B=2
full densenet121 '' -D B=2
full inception '' -D B=2
full vgg16 '' -D B=1
full unet '' -D B=1 -D S=256
finish
