#!/bin/sh
# What the random training steps came to: proof.sh FILE, as budget_test wrote it under GPLAN_PROOF.
# Fails where fewer than four plans in five compute something again, where half of the graphs have
# less than 100 nodes, where few went through gcc, or where an op with a gradient is missing (fewer
# than 1,000 graphs need not have them all).
set -u
[ $# -eq 1 ] && [ -s "$1" ] || { echo "usage: proof.sh FILE" >&2; exit 2; }
median=$(awk '$1 == "graph" { print $4 }' "$1" | sort -n | awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }')
awk -v median="$median" '
    $1 == "gradients" { for (i = 2; i <= NF; i++) wanted[$i] = 1 }
    $1 == "graph" {
        graphs++; plans += $6; again += $8; emitted += $10; finite += $12
        for (i = 14; i <= NF; i++) seen[$i] = 1
    }
    END {
        for (op in wanted) { ops++; if (op in seen) covered++; else missing = missing " " op }
        printf "%d training graphs, median %d nodes, %d with finite parameters at the end\n", \
            graphs, median, finite
        printf "%d plans within their budgets, the same bits after two steps; %.1f%% recompute\n", \
            plans, plans ? 100 * again / plans : 0
        printf "%d graphs through the emitted C and gcc\n", emitted
        printf "%d of %d ops with a gradient occur%s%s\n", covered, ops, missing ? ", not" : "", missing
        exit !(again >= 0.8 * plans && median >= 100 && emitted * 10 >= graphs &&
            (covered == ops || graphs < 1000))
    }' "$1"
