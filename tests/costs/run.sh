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
finish
