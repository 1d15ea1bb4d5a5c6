#!/bin/sh
# What an op's row must say for the project to build: tests/rows/run.sh path/to/gplan
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cc=${CC:-gcc}
cd "$work" || exit 1

# The tool of the build that reads every row, over a registry of one family.
echo 'OPS(tried)' >ops.inc
tool() { # ROW
    printf '%s\n' '#include "frontend/ops/batch.h"' 'static bool shape(Graph *g, Call *c)' \
        '{ return call_output(g, c, F32, 0, NULL); }' \
        "const OpRow ops_tried[] = {{.name = \"sum\", .kernel = \"reduce\", .shape = shape, $1}, {0}};" \
        >tried.c
    sanitize=''
    case $gplan in *-sanitized/*) sanitize=-fsanitize=address,undefined ;; esac
    # shellcheck disable=SC2086
    "$cc" -std=c11 -D_POSIX_C_SOURCE=200809L $sanitize -I. -I"$root" tried.c \
        "$root/frontend/ops.c" "$root/codegen/adapters.c" "${gplan%/*}/gen/text.o" \
        "${gplan%/*}/libfrontend.a" -lm -o tool
}
builds() {
    tool '.batch = batch_each' && ./tool c >table.c && grep -q 'sum_run' table.c
}
check 'a row that says how the batch passes through it builds' builds
stops() {
    tool '' && ! ./tool c >table.c 2>said && [ ! -s table.c ] &&
        grep -q 'op sum: its row must say how the batch passes through it' said
}
check 'one that does not stops the build by name' stops

finish
