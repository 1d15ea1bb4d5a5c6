#!/bin/sh
# Templates are C as they stand: codegen/templates is compiled for the model of sample.h, with every
# fact on and with each one off; what gplan fills in is what sample.h has: run.sh path/to/gplan
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
templates=$root/codegen/templates
include="-I$root -I$root/build/gen -I$templates -include $templates/sample.h"
strict='-std=c11 -Wall -Wextra -Wpedantic -Werror'
cpp='-std=c++17 -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-function'
watch='-DGPLAN_PROFILE -DGPLAN_POISON -DGPLAN_CHECK_NAN'
facts=$(sed -n 's/^#ifndef \(MODEL_[A-Z_]*\)$/\1/p' "$templates/sample.h")

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    # shellcheck disable=SC2086
    check "net.c by $compiler" $compiler $strict $include -fsyntax-only "$templates/net.c"
    # shellcheck disable=SC2086
    check "net.c that watches its ops, by $compiler" $compiler $strict $include $watch \
        -fsyntax-only "$templates/net.c"
    # shellcheck disable=SC2086
    check "net_main.c by $compiler" $compiler $strict $include -fopenmp -fsyntax-only "$templates/net_main.c"
done
for fact in MODEL_HAS_EVAL MODEL_HAS_EVAL_DATA MODEL_HAS_FORWARD; do
    # shellcheck disable=SC2086
    check "net_main.c without $fact" gcc $strict $include -D"$fact=0" -fsyntax-only "$templates/net_main.c"
done
# shellcheck disable=SC2086
check 'net.c with weights inside' gcc $strict $include $watch -DMODEL_EMBEDS=1 -DMODEL_HAS_PARAMS=0 -DMODEL_TRAINS=0 \
    -fsyntax-only "$templates/net.c"
for fact in $facts; do
    # shellcheck disable=SC2086
    check "net.c without $fact" gcc $strict $include $watch -D"$fact=0" -fsyntax-only "$templates/net.c"
    # shellcheck disable=SC2086,SC2046
    check "net.cu without $fact" g++ $cpp -DGP_CUDA_ON_CPU -I"$root/tests/cuda_on_cpu" $include \
        -DMODEL_CUDA=1 $([ "$fact" = MODEL_CUDA ] || echo "-D$fact=0") -fsyntax-only -x c++ "$templates/net.cu"
done

# Each word of a template is in sample.h, and each of sample.h in a template.
words() { grep -ho 'MODEL_[A-Z_]*[A-Z]' "$@" | sort -u; }
in_comments='MODEL_(NAME|SOURCE|HEADER_NAME|ARENA_SIZE|ARENA_COUNT|PERSISTENT|LARGEST|CONSTANTS_NAME|CONSTANT_NAMES)'
same_words() {
    words "$templates"/[!s]*.[ch] "$templates/settings.c" "$templates/net.cu" |
        grep -Evx "$in_comments" >"$work/used" &&
        words "$templates/sample.h" | comm -3 - "$work/used" >"$work/differ" &&
        cat "$work/differ" && [ ! -s "$work/differ" ]
}
check 'sample.h has what templates name' same_words
finish
