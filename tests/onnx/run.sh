#!/bin/sh
# ONNX files. usage: run.sh [--bless] GPLAN
#
# A sample of ONNX's own tests, where Debian's libonnx-testdata is installed: what score.tsv says
# passes must still pass, and nothing may be wrong. make onnx-score runs them all.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"

data=/usr/share/libonnx-testdata/data
score=$(dirname "$gplan")/tests/onnx/score/score

sample() { # what passed before and does not now, and what is wrong
    "$score" "$gplan" "$data" "$work/score" -s 1/24 >"$work/now" || return 1
    [ -s "$work/now" ] || return 1
    awk -F'\t' 'NR == FNR { before[$1] = $2; next }
        $2 == "wrong" { print; bad = 1; next }
        before[$1] ~ /pass|narrowed/ && $2 !~ /pass|narrowed/ { print; bad = 1 }
        END { exit bad }' "$here/score.tsv" "$work/now"
}
if [ -d "$data" ] && [ -x "$score" ]; then
    check a_sample_of_onnx_tests_passes_as_before sample
fi

# The example: what is imported is trained, within a budget, from the file's own weights.
finetune() {
    (cd "$work" && "$gplan" "$root/examples/finetune/shapes.onnx" "$root/examples/finetune/last_layer.g" \
        -D batch=32 --threads 2 --budget 768K --quiet -o shapes.c &&
        cc -O1 -I. shapes.c "$root/examples/finetune/finetune.c" -lm -o finetune &&
        ./finetune shapes.safetensors tuned.safetensors >said) || return 1
    awk 'NR == 1 { first = $4 } { last = $4; share = $6 }
        END { exit !(NR == 6 && last < first / 4 && share > 0.9) }' "$work/said"
}
last_layer_alone() {
    "$gplan" params "$root/examples/finetune/shapes.onnx" "$root/examples/finetune/last_layer.g" -D batch=1 |
        awk '$4 ~ /^[0-9]+$/ && $5 == "trainable" { names = names " " $1 }
            $5 ~ /^[0-9]+$/ && $6 == "trainable" { names = names " " $1 }
            END { exit names != " fc.weight fc.bias" }'
}
check the_last_layer_of_an_imported_classifier_is_trained finetune
check nothing_else_of_it_is_trained last_layer_alone

# Models with the results of ONNX Runtime: a product of integers whose sums exceed 2^24, and
# attention written out, which is one op where nobody else reads the scores or the weights.
own() {
    "$score" "$gplan" "$here/own" "$work/own" >"$work/now" && [ -s "$work/now" ] || return 1
    ! grep -v "$(printf '\tpass\t')" "$work/now"
}
control_characters() {
    LC_ALL=C sed 's/0start/0\nstar/' "$here/own/node/test_names/model.onnx" >"$work/names.onnx"
    ! "$gplan" "$work/names.onnx" --infer --emit g >"$work/names.g" 2>"$work/said" &&
        [ ! -s "$work/names.g" ] && grep -q 'a name is not UTF-8 text without control' "$work/said"
}
prints_alike() { # a graph is that of its text
    "$gplan" "$1" --infer --emit g >"$work/alike.g" &&
        "$gplan" "$1" --infer --emit graph >"$work/alike.1" &&
        "$gplan" "$work/alike.g" --infer --emit graph >"$work/alike.2" &&
        cmp "$work/alike.1" "$work/alike.2"
}
check a_name_with_a_new_line_is_refused control_characters
check names_of_all_kinds_are_read_again prints_alike "$here/own/node/test_names/model.onnx"
recognised() { # TIMES MODEL
    [ "$("$gplan" "$here/own/node/test_$2/model.onnx" --emit g | grep -c 'sdpa(')" = "$1" ]
}
if [ -x "$score" ]; then
    check own_models_have_the_results_of_another_tool own
fi
check attention_with_a_condition_is_one_op recognised 1 attention_where
check attention_with_a_sum_is_one_op recognised 1 attention_added
check attention_of_rows_that_see_nothing_is_one_op recognised 1 attention_guarded
stays_free() { # a size of one axis that is computed with
    cp "$root/tests/fuzz/corpus/onnx/size_factor" "$work/factor.onnx"
    "$gplan" "$work/factor.onnx" -D len=5 --infer --emit g |
        grep -q 'y = x \* len'
}
check a_size_that_is_a_factor_stays_free stays_free
check attention_whose_weights_are_read_stays_as_it_is recognised 0 attention_read_twice

fixes_sizes() { # reflect pads along a free dimension
    cp "$root/tests/fuzz/corpus/onnx/fixed" "$work/fixed.onnx"
    head -c 16 /dev/zero >"$work/data"
    "$gplan" "$work/fixed.onnx" -D N=3 --infer --emit g >"$work/fixed.g" 2>"$work/said" &&
        grep -q 'x : f32\[3, 4\]' "$work/fixed.g" && grep -q 'dimensions are fixed' "$work/said"
}
unnamed_dimensions() { # "?" twice: not one size
    cp "$root/tests/fuzz/corpus/onnx/unnamed" "$work/unnamed.onnx"
    "$gplan" "$work/unnamed.onnx" -D x_1=5 --infer --emit g | grep -q 'x : f32\[x_0, x_1\]'
}
check dimensions_without_a_name_are_apart unnamed_dimensions
lists_free_dimensions() { # with what is known of each
    "$gplan" "$work/unnamed.onnx" --infer --emit g 2>"$work/said" && return 1
    grep -q 'need a size: x_1 (axis 1 of x); x_0 (axis 0 of x) is 1' "$work/said"
}
absurd_size() { # more than a program can address
    "$gplan" "$work/unnamed.onnx" -D x_0=99999999999 -D x_1=99999999 --infer 2>"$work/said" && return 1
    grep -q 'more than 2^47 bytes' "$work/said"
}
check free_dimensions_are_listed_with_their_place lists_free_dimensions
check a_size_beyond_all_memory_is_refused absurd_size
one_zero_point() { # a constant without dimensions
    cp "$root/tests/fuzz/corpus/onnx/integers" "$work/integers.onnx"
    "$gplan" "$work/integers.onnx" --infer --emit g >"$work/integers.g"
}
refused_as() { # MODEL MESSAGE
    cp "$root/tests/fuzz/corpus/onnx/$1" "$work/$1.onnx"
    "$gplan" "$work/$1.onnx" --infer --emit g >"$work/$1.g" 2>"$work/said"
    [ $? -eq 1 ] && [ ! -s "$work/$1.g" ] && grep -q "$2" "$work/said"
}
check functions_that_call_each_other_are_refused refused_as recursive 'more than 16 deep'
check functions_that_grow_without_end_are_refused refused_as doubling 'more than .* nodes'
check a_zero_point_may_be_one_constant one_zero_point
check free_dimensions_are_fixed_where_nothing_else_can_be fixes_sizes
finish
