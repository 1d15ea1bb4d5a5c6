#!/bin/sh
# Scores ONNX's own tests. usage: score.sh BUILD DATA
#
# Prints one line for each test that does not pass, totals by op, and leaves the whole table in
# BUILD/tests/onnx/score.tsv. Fails where a result is wrong.
build=$1 data=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
table=$build/tests/onnx/score.tsv
"$build/tests/onnx/score" "$PWD/$build/gplan" "$data" "$work" >"$table" || exit 1
awk -F'\t' '$2 != "pass" && $2 != "narrowed" { print }' "$table"
echo
awk -F'\t' '
  { count[$2]++; total++ }
  $2 != "pass" && $2 != "narrowed" {
      op = match($3, /\([A-Za-z0-9]+\)/) ? substr($3, RSTART + 1, RLENGTH - 2) : "other"
      by[op]++
  }
  END {
      for (op in by) printf "%6d  %s\n", by[op], op | "sort -rn"
      close("sort -rn")
      printf "\n%d of %d pass", count["pass"] + count["narrowed"], total
      printf " (%d in a narrower dtype), %d refused, %d fail, %d wrong\n", count["narrowed"],
             count["refused"], count["fail"], count["wrong"]
      exit count["wrong"] > 0
  }' "$table"
