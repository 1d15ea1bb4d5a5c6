#!/bin/sh
# What budgets cost, to the last digit, and what is said where one is too small: NAME.txt is what
# gplan prints. Effort is counted, so it is the same on every machine; a search that finds something
# better changes the files, and the diff shows where. usage: run.sh [--bless] GPLAN
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
plan_for_one_thread
cd "$here" || exit 1

golden() { # NAME OPTIONS...
    text=$1.txt
    shift
    "$gplan" "$@" --effort 2 --color never >"$work/now" 2>&1
    [ -z "$bless" ] || cp "$work/now" "$text"
    diff -u "$text" "$work/now"
}
net=../budget/net.g
check 'the costs of budgets' golden net $net --pareto --emit csv
check 'the report within one of them' golden net_report $net --budget 600K --report
check 'a budget that is too small' golden net_misfit $net --budget 500K --accumulate 1
check 'micro-batches that nobody asked for' golden net_micro $net --budget 500K
gpt='../../examples/gpt2.g -D L=2 -D C=24 -D T=16 -D V=150 -D B=4'
# shellcheck disable=SC2086
check 'chunked losses and micro-batches' golden gpt $gpt --pareto --emit csv
# shellcheck disable=SC2086
check 'a step in chunks' golden gpt_misfit $gpt --budget 20K
check 'hints' golden hints hints.g -d plan --report
check 'hints, and no training' golden hints_infer hints.g --infer -d plan --report
check 'a hint at the loss' golden loss loss.g --report
check 'windows of a concat' golden windows windows.g --pareto

# ---- What ranks lose to their link ------------------------------------------------------------

# Moving takes what the link says of bytes and messages, adding what the memory says, and the losses
# of a step a message each way for each rank; what no op hides is lost.
machine='"product_flops": 1e9, "conv_flops": 1e9, "loop_flops": 1e9, "bytes": 1e9, "start": 1e-6'
numbers=2222 # 2,221 that are trained, and a metric
lost() { # RANKS LINK_BYTES LINK_START LINK_CORE LEAST MOST: of the link's time
    echo "{\"gplan_profile\": 1, $machine, \"link_bytes\": $2, \"link_start\": $3, \"link_core\": $4}" \
        >"$work/link.json"
    "$gplan" ../ranks/dense.g -D H=33 --ranks "$1" --profile "$work/link.json" --emit json >"$work/ranks.json" &&
        "$gplan" verify "$work/ranks.json" || return 1
    tr -d '\n ' <"$work/ranks.json" | sed 's/.*"communication":{//; s/}.*//' | tr ',' '\n' | tr -d '"' |
        awk -F: -v R="$1" -v bytes="$2" -v start="$3" -v numbers=$numbers -v least="$5" -v most="$6" '
            { is[$1] = $2; print }
            function off(a, b) { return a < 0.9999 * b || a > 1.0001 * b }
            END {
                link = is["sent"] / bytes + is["messages"] * start + 1.5 * is["sent"] / 1e9 + 2 * (R - 1) * start
                exit is["sent"] != 8 * numbers * (R - 1) / R || off(is["link_seconds"], link) ||
                    is["lost_seconds"] > 1.0001 * most * link || is["lost_seconds"] < 0.9999 * least * link ||
                    is["lost_seconds"] >= is["step_seconds"]
            }'
}
check 'a link that the cores move: all is lost' lost 2 1e9 1e-6 1 1 1
check 'one that moves by itself: the additions are' lost 2 1e12 1e-12 1e-6 0.99 1
check 'a slow one: the ops hide what they can' lost 2 1e6 1e-12 1e-6 0.98 0.993
check 'a fast one: they hide more' lost 4 1e9 1e-12 1e-6 0.6 0.9
grows() { # running statistics: a row for each rank
    "$gplan" ../ranks/norm.g --ranks 8 --report | grep -q 'grows with ranks  *1.00 KiB'
}
check 'what grows with ranks is told' grows
finish
