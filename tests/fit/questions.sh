#!/bin/bash
# What each example costs at parts of the arena that it needs without recomputation, and how long
# each question takes: a row of a table for each model, to be compared between two revisions.
# usage: questions.sh GPLAN [MODEL...]
#
# Costs are extra time in percent, "-" where the budget is not met without micro-batches. Seconds
# are of the processor, the user's: they say something on a busy machine too.
gplan=$1
shift
cd "$(dirname "$0")/../../examples" || exit 1
[ $# -gt 0 ] || set -- *.g
TIMEFORMAT=%U

# Runs gplan; leaves what it prints in $said, and its seconds in $took.
ask() {
    took=$({ time "$gplan" "$@" --threads 1 >"$work" 2>/dev/null; } 2>&1)
    said=$(cat "$work")
}
work=$(mktemp)
trap 'rm -f "$work"' EXIT

extra() { # at the budget
    ask "$model" --accumulate 1 --budget "$1" --emit json
    said=$(printf '%s' "$said" | grep -o '"extra_percent":[0-9.e-]*,"bound_percent":[0-9.e-]*' |
        awk -F '[:,]' '{ printf "%.2f (%.2f)", $2, $4 }')
    echo "${said:--}"
}

columns='model none least 80% 60% 40% 20% min-budget max misfit budget pareto'
echo "| ${columns// / | } |"
echo "|${columns//[^ ]/}|" | sed 's/ /---|/g; s/|$/---|/'
for model; do
    model=${model%.g}.g
    ask "$model" --accumulate 1 -d plan
    none=$(echo "$said" | sed -n 's/^arena \([0-9]*\),.*/\1/p')
    ask "$model" --min-budget
    least=$(echo "$said" | head -1)
    smallest=$took
    row="| ${model%.g} | $none | $least |"
    for part in 80 60 40 20; do
        extra $((none / 100 * part)) >"$work.cost"
        row="$row $(cat "$work.cost") |"
        [ $part = 60 ] && budget=$took
    done
    rm -f "$work.cost"
    row="$row $smallest |"
    batch=$(sed -n 's/^model.*(batch \([A-Za-z]*\) .*/\1/p' "$model")
    ask "$model" --max "${batch:-B}" --budget $((none / 100 * 60))
    row="$row $took |"
    ask "$model" --budget $((least / 100 * 60))
    row="$row $took | $budget |"
    ask "$model" --pareto --emit csv
    echo "$row $took |"
done
