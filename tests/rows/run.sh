#!/bin/sh
# What an op's row must say for the project to build: tests/rows/run.sh path/to/gplan
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cc=${CC:-gcc}
cd "$work" || exit 1

# The tool of the build that reads every row, over a registry of one family.
echo 'OPS(tried)' >ops.inc
tool() { # ROW [NAME KERNEL]
    printf '%s\n' '#include "frontend/ops/batch.h"' 'static bool shape(Graph *g, Call *c)' \
        '{ return call_output(g, c, F32, 0, NULL); }' \
        "const OpRow ops_tried[] = {{.name = \"${2:-sum}\", .kernel = \"${3:-reduce}\"," \
        ".shape = shape, $1}, {0}};" \
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
    tool '.batch = batch_each' && ./tool adapters.c >table.c && grep -q 'sum_run' table.c
}
check 'a row that says how the batch passes through it builds' builds
stops() {
    tool '' && ! ./tool adapters.c >table.c 2>said && [ ! -s table.c ] &&
        grep -q 'op sum: its row must say how the batch passes through it' said
}
check 'one that does not stops the build by name' stops

fails() { # FLAGS NAME KERNEL MESSAGE
    tool ".batch = batch_each, .flags = $1" "$2" "$3" && ! ./tool adapters.c >table.c 2>said && grep -q "$4" said
}
check 'a kernel that meets a bad index and does not say so stops it' \
    fails 0 gather gather 'op gather: its kernel returns GP_EINDEX: its row must have OP_LOOKS_UP'
check 'and so does one that says so and never meets one' \
    fails OP_LOOKS_UP sum reduce 'op sum: its row has OP_LOOKS_UP, but its kernel never returns GP_EINDEX'
says() {
    tool '.batch = batch_each, .flags = OP_LOOKS_UP' gather gather && ./tool adapters.c >table.c
}
check 'one that meets one and says so builds' says

settings() {
    tool '.batch = batch_each, .args = {{.name = "x"}, {.name = "low", .kind = ARG_FLOAT},
        {.name = "by", .kind = ARG_INTS, .count = 2, .help = "how far", .flags = ARG_HIDDEN},
        {.name = "shown", .kind = ARG_INT, .flags = ARG_FRONT}}' && ./tool settings.h >settings.h &&
        printf '%s\n' 'typedef struct {' '    double low;' '    int64_t by[2]; /* how far */' \
            '} gp_sum_attr;' >want && sed -n '/^typedef/,/^}/p' settings.h | diff want -
}
check 'the settings of a kernel are a struct made from its row' settings

# A fact of an op is in its row: nobody else asks what an op is called.
names=$(sed -nE '/^const OpRow/,/^}/s/^    \{\.name = "([a-z0-9_]+)".*/\1/p' "$root"/frontend/ops/*.c |
    paste -sd'|')
compared() { # FILE...: comparisons with the name of an op
    # shellcheck disable=SC2016
    cat "$@" | tr '\n' ' ' | tr ';{}' '\n' |
        grep -E "(str|mem)n?(cmp|str)\\([^()]*(op->name|\"($names)\")|[!=]= *op_find|op_find\\([^)]*\\) *[!=]= [^N]"
}
none() {
    sources=$(ls "$root"/planner/*.[ch] "$root"/codegen/*.[ch] "$root"/frontend/*.[chyl])
    # shellcheck disable=SC2086
    compared $sources >found
    cat found
    [ ! -s found ]
}
check 'no op is told by its name outside of its row' none
told() { # LINE
    printf '%s\n' "$1" >told.c && compared told.c >found
}
check 'where one is, the check sees it' told 'if (strcmp(node->op->name, name) == 0) x();'
check 'by its word' told 'return !strcmp(
    name, "conv2d");'
check 'by its row' told 'bool is = node->op == op_find("concat");'

finish
