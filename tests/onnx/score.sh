#!/bin/sh
# Scores ONNX's own tests. usage: score.sh [--bless] BUILD DATA
#
# Prints one line for each test that does not pass, totals by op, and what the table that is kept,
# score.tsv, has otherwise; --bless keeps the new one. Fails where a result is wrong, and where a
# test passes no more.
bless=''
[ "$1" = --bless ] && { bless=yes; shift; }
build=$1 data=$2
kept=$(dirname "$0")/score.tsv
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
table=$build/tests/onnx/score.tsv
"$build/tests/onnx/score/score" "$PWD/$build/gplan" "$data" "$work" >"$table" || exit 1
awk -F'\t' '$2 != "pass" && $2 != "narrowed" && $2 != "random" { print }' "$table"
echo
awk -F'\t' '
  { count[$2]++; total++ }
  $2 != "pass" && $2 != "narrowed" && $2 != "random" {
      op = match($3, /\([A-Za-z0-9]+\)/) ? substr($3, RSTART + 1, RLENGTH - 2) : "other"
      by[op]++
  }
  END {
      for (op in by) printf "%6d  %s\n", by[op], op | "sort -rn"
      close("sort -rn")
      printf "\n%d of %d pass", count["pass"] + count["narrowed"], total
      printf " (%d in a narrower dtype), %d of random numbers", count["narrowed"], count["random"]
      printf ", %d refused, %d of doubles beyond f32, %d fail, %d wrong\n", count["refused"],
             count["beyond"], count["fail"], count["wrong"]
      exit count["wrong"] + count["fail"] > 0
  }' "$table"
status=$?
[ -z "$bless" ] || cp "$table" "$kept"
awk -F'\t' 'NR == FNR { before[$1] = $2; next }
  before[$1] == $2 { next }
  { print ($1 in before ? "was " before[$1] : "new") ": " $1 " " $2 }
  before[$1] ~ /pass|narrowed/ && $2 !~ /pass|narrowed/ { worse = 1 }
  END { exit worse }' "$kept" "$table" || status=1
exit $status
