#!/bin/bash
# What every example computes, and what its plans are, as text to compare with that of another
# revision: a change of how gplan is built up changes none of it.
#
#     tests/same/same.sh GPLAN [EXAMPLE...] > table
#
# With no budget, at 60 % of that arena (or at the minimum, where that is more) and at the minimum:
# the arena and the cost at full size, then hashes of outputs, losses, parameters and state after
# three steps at a small size, planned for one thread. `make same BASE=REVISION` compares with what that revision gives.
set -eu
gplan=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
examples=${*:-$(basename -s .g examples/*.g)}

small() { # EXAMPLE
    case $1 in
    mlp | oom_d) echo -D B=4 ;;
    lenet) echo -D B=4 ;;
    lstm) echo -D B=2 -D T=6 ;;
    gpt2 | bert) echo -D B=2 -D T=32 -D L=3 -D V=500 -D C=96 -D H=4 ;;
    oom_a) echo -D B=2 -D S=34 ;;
    oom_b) echo -D B=2 -D S=62 ;;
    oom_c) echo -D B=1 -D S=16 ;;
    resnet50) echo -D B=2 -D S=64 -D W=16 ;;
    unet) echo -D B=1 -D S=32 -D W=8 ;;
    mobilenetv2) echo -D B=2 -D S=64 ;;
    *) echo -D B=1 -D S=64 ;;
    esac
}

arena_and_cost() { # EXAMPLE OPTIONS...
    local example=$1
    shift
    "$gplan" "examples/$example.g" --threads 1 --quiet --emit json "$@" >"$work/plan.json"
    grep -oE '"(arena|seconds|least|bound_percent)": *[^,}]*' "$work/plan.json" | head -n 4 |
        tr -d '" ' | tr '\n' ' '
}

budgets() { # EXAMPLE OPTIONS...: three of them, or two where they are the same
    local most least
    most=$("$gplan" "examples/$1.g" --threads 1 "${@:2}" --quiet --emit json | grep -oE '"arena": *[0-9]+' |
        head -n 1 | grep -oE '[0-9]+')
    least=$("$gplan" "examples/$1.g" --threads 1 "${@:2}" --quiet --min-budget | head -n 1)
    printf '%s\n' 0 $((most * 6 / 10 > least ? most * 6 / 10 : least)) "$least" | uniq
}

trace() { # EXAMPLE BUDGET OPTIONS...
    local example=$1 budget=()
    [ "$2" = 0 ] || budget=(--budget "$2")
    shift 2
    "$gplan" "examples/$example.g" --threads 1 --quiet "$@" "${budget[@]}" -o "$work/$example.c"
    gcc -std=c11 -O1 -march=native -c "$work/$example.c" -o "$work/model.o"
    gcc -std=c11 -O1 -I. "-DMODEL=$example" "-DARENA=${example^^}_ARENA_BYTES" \
        -include "$work/$example.h" tests/same/trace.c "$work/model.o" -o "$work/trace" -lm
    "$work/trace" | sort
}

for example in $examples; do
    read -ra options < <(small "$example")
    for budget in $(budgets "$example"); do
        with=()
        [ "$budget" = 0 ] || with=(--budget "$budget")
        echo "$example budget $budget: $(arena_and_cost "$example" "${with[@]}")"
    done
    for budget in $(budgets "$example" "${options[@]}"); do
        trace "$example" "$budget" "${options[@]}" | sed "s/^/$example ${options[*]} budget $budget: /"
    done
done
