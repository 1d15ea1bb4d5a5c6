#!/bin/sh
# Many random models: [WORKERS=2] tests/random/models.sh RANDOM_MODELS GPLAN FIRST COUNT
# Each tenth is also compiled by gcc. Shows how many models had each feature and how many plans each
# choice; among 500 models or more, what was never seen is a fault. Models that fail are left in
# build/random.
set -u
[ $# -eq 4 ] || { echo "usage: $0 RANDOM_MODELS GPLAN FIRST COUNT" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$(realpath "$1")
gplan=$(realpath "$2")
work=$root/build/random
rm -rf "$work"

part() { # NUMBER FIRST COUNT
    mkdir -p "$work/$1" && cd "$work/$1" || exit 1
    "$program" "$gplan" "$2" "$3" 10 >counts
    echo $? >status
}
workers=${WORKERS:-2}
worker=0
while [ "$worker" -lt "$workers" ]; do
    from=$(($4 * worker / workers))
    worker=$((worker + 1))
    (part "$worker" $(($3 + from)) $(($4 * worker / workers - from))) &
done
wait

grep -v -h '^  .* [0-9]*$' "$work"/*/counts
awk -v models="$4" '
    /^  .* [0-9]+$/ { n = $NF; sub(/ +[0-9]+$/, ""); if (!($0 in sum)) order[++kinds] = $0; sum[$0] += n }
    END {
        for (i = 1; i <= kinds; i++) {
            printf "%-40s %8d\n", order[i], sum[order[i]]
            if (models >= 500 && sum[order[i]] == 0) { print "never seen:" order[i]; missing = 1 }
        }
        exit missing
    }' "$work"/*/counts && [ "$(cat "$work"/*/status | grep -c '^0$')" -eq "$workers" ]
