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
        "$root/frontend/ops.c" "$root/codegen/adapters.c" "$root/codegen/settings.c" \
        "$root/codegen/text.c" "${gplan%/*}/gen/text.o" \
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

settings() {
    tool '.batch = batch_each, .args = {{.name = "x"}, {.name = "low", .kind = ARG_FLOAT},
        {.name = "by", .kind = ARG_INTS, .count = 2, .help = "how far", .flags = ARG_HIDDEN},
        {.name = "shown", .kind = ARG_INT, .flags = ARG_FRONT}}' && ./tool settings >settings.h &&
        printf '%s\n' 'typedef struct {' '    double low;' '    int64_t by[2]; /* how far */' \
            '} gp_sum_attr;' >want && sed -n '/^typedef/,/^}/p' settings.h | diff want -
}
check 'the settings of a kernel are a struct made from its row' settings

finish
