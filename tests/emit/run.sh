#!/bin/sh
# Emitted C, from the model to the run: tests/emit/run.sh path/to/gplan
# NAME.g is emitted, NAME.c is a program that calls it and says what is not as it should be.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$work" || exit 1
strict='-std=c11 -Wall -Wextra -Wpedantic -Werror'
sanitize='-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined'
export ASAN_OPTIONS=detect_leaks=0

emit() { # NAME [FILE]: with the options that the model's first lines ask for
    # shellcheck disable=SC2046
    (cd "$here" && "$gplan" "$1.g" $(sed -n 's/^# options: //p' "$1.g") -o "$work/${2:-$1}.c")
}

build() { # PROGRAM COMPILER FLAGS... of the model $model
    program=$1
    compiler=$2
    shift 2
    # shellcheck disable=SC2086
    "$compiler" $strict -I. -I"$here" "$@" "$model.c" "$here/$model.c" -lm -o "$program"
}

run() { # the model under the sanitizers, with these flags
    # shellcheck disable=SC2086
    build program gcc $sanitize "$@" && ./program
}

for source in "$here"/*.c; do
    model=$(basename "$source" .c)
    case $model in prefixes | embedded) continue ;; esac # see below
    check "emit $model" emit "$model"
    # shellcheck disable=SC2046
    [ "$model" = memory ] || check "run $model" run $(sed -n 's/^ \* flags: //p' "$source")
done

# Where the memory is least, an output that the model reads too is computed again.
model=recomputed
recomputed() {
    "$gplan" "$here/recomputed.g" --quiet -o recomputed.c \
        --budget "$(least_budget "$here/recomputed.g")" &&
        [ "$(grep -c 'OP(.* softmax_[0-9]*(run, AT(x), AT(v' recomputed.c)" -eq 2 ] && run -DGPLAN_POISON
}
check 'an output that is computed again' recomputed

# The number of resident bytes means nothing under a sanitizer.
model=memory
memory() { build program gcc -O2 && ./program; }
check 'resident memory' memory

# The checks that can be compiled in, with threads; poison changes no bit.
model=layers
check 'checks' run -fopenmp -DGPLAN_POISON -DGPLAN_CHECK_NAN -DGPLAN_PROFILE
poison() {
    build plain gcc -O2 && build poisoned gcc -O2 -DGPLAN_POISON && ./plain >plain.out &&
        ./poisoned >poisoned.out && cmp plain.out poisoned.out
}
check 'poison' poison

# Operands that lie in their windows: nothing is left to copy, and no kernel to emit.
joined() {
    printf 'model joined(batch B = 2)\ninput x : f32[B, 3, 8]\n%s\n' \
        'output y = softmax(concat(tanh(x), exp(x), axis = 1))' >joined.g
    "$gplan" joined.g --quiet -o joined.c && ! grep -q 'gp_concat(' joined.c
}
check 'a concat that is written in place is no op' joined

# Windows with gaps, in the search for what made a NaN: what is dead beside them is poisoned.
windows() {
    cat >windows.c <<'END'
#include "joined.h"
#include <stdlib.h>
int main(void)
{
    joined m;
    void *arena = aligned_alloc(64, (JOINED_ARENA_BYTES + 63) / 64 * 64);
    if (!arena || joined_init(&m, arena, JOINED_ARENA_BYTES) != JOINED_OK)
        return 2;
    joined_reset(&m, 1);
    for (int i = 0; i < JOINED_X_COUNT; i++)
        joined_x(&m)[i] = (float)i / 100;
    int code = joined_forward(&m);
    free(arena);
    return code != JOINED_OK;
}
END
    # shellcheck disable=SC2086
    gcc $strict $sanitize -DGPLAN_POISON -DGPLAN_CHECK_NAN -I. windows.c joined.c -lm -o windows &&
        ./windows
}
check 'no NaN is seen beside a window' windows

# Two plans of one model, under names of their own.
prefixes() {
    "$gplan" "$here/prefixes.g" --quiet --prefix fit -o fit.c &&
        "$gplan" "$here/prefixes.g" --quiet --prefix use --infer -D B=1 -o use.c &&
        gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -O1 -I. "$here/prefixes.c" fit.c use.c -lm \
            -o prefixes && ./prefixes
}
check 'two plans of one model in one program' prefixes

# What is left out is not declared, and what is there computes the same bits.
model=programs
programs() { # LIST FUNCTIONS
    "$gplan" "$here/programs.g" --quiet --programs "$1" -o programs.c &&
        gcc $strict -c programs.c -o programs.o &&
        [ "$(sed -n 's/^int programs_\(forward\|eval\|step\)(.*/\1/p' programs.h | tr '\n' ' ')" = "$2 " ] &&
        case $1 in *forward*) grep -qF 'programs_p(' programs.h ;; *) ! grep -qF 'programs_p(' programs.h ;; esac
}
for list in forward eval step forward,eval forward,step eval,step step,eval,forward; do
    functions=''
    for name in forward eval step; do
        case ,$list, in *",$name,"*) functions="$functions$name " ;; esac
    done
    check "--programs $list" programs "$list" "${functions% }"
done
left_out() { # OPTIONS...
    "$gplan" "$here/programs.g" --quiet "$@" -o programs.c && build all gcc && ./all >all.out &&
        "$gplan" "$here/programs.g" --quiet --programs step,eval "$@" -o programs.c && build some gcc &&
        ./some | cmp - all.out && [ "$(wc -l <all.out)" -eq 4 ]
}
check 'a step without forward has the same bits' left_out
check 'and in micro-batches too' left_out --accumulate 2

# Epilogues of products give the bits that they give on their own, with any number of threads and
# under any budget.
model=epilogues
least=$(least_budget "$here/epilogues.g" --threads 3)
epilogues() { # OPTIONS...
    "$gplan" "$here/epilogues.g" --quiet --threads 3 "$@" -o epilogues.c &&
        build epilogues.program gcc -O3 -march=native -fopenmp && ./epilogues.program 3 >epilogues.out &&
        ./epilogues.program 1 | cmp - epilogues.out
}
fused() {
    epilogues --epilogues never && ! grep -q 'void epilogue_' epilogues.c && mv epilogues.out never.out &&
        epilogues --epilogues always && grep -q 'void epilogue_' epilogues.c && cmp epilogues.out never.out &&
        grep -q 'epilogue_add_[0-9]*, run, x0, &n' epilogues.c && # one for rows of two widths
        epilogues --epilogues always --accumulate 1 --recompute none && cmp epilogues.out never.out &&
        epilogues --budget "$least" && cmp epilogues.out never.out
}
check 'after products' fused

# Weights in the C file give the bits of those that are loaded, and no function reads or writes a file.
embedded() { # COMPILER FLAGS...: the embedded model, and its output
    "$@" -DEMBEDDED -I"$here" "$here/embedded.c" embedded.c -lm -o program && ./program >inside
}
model=embedded
embeds() {
    "$gplan" "$here/embedded.g" --quiet -o saved.c &&
        gcc -DSAVE -I. -I"$here" "$here/embedded.c" saved.c -lm -o program && ./program &&
        "$gplan" "$here/embedded.g" --quiet --infer -o embedded.c && build program gcc -O1 &&
        ./program >loaded && [ "$(wc -l <loaded)" -eq 9 ] &&
        "$gplan" "$here/embedded.g" --quiet --infer --params embedded=embedded.safetensors -o embedded.c &&
        cat embedded.c embedded.h >both && ! grep -n 'open(\|_load\|_save\|_bind\|gp_initialize' both &&
        ! grep -n '.\{101\}' embedded.c &&
        for compiler in gcc clang; do
            # shellcheck disable=SC2086
            embedded $compiler $strict -I. && cmp loaded inside || return 1
        done
    # shellcheck disable=SC2086
    embedded gcc $strict $sanitize -I. && cmp loaded inside
}
check 'weights in the C file' embeds
lacks() { # MESSAGE FILE: what is wrong with it, and nothing is written
    rm -f lacks.c
    ! "$gplan" "$here/embedded.g" --infer --params "embedded=$2" -o lacks.c 2>said &&
        cat said && grep -qF "$2: error: $1" said && [ ! -e lacks.c ]
}
sed 's/"table"/"tabel"/' embedded.safetensors >missing.safetensors
sed 's/"shape":\[20,7\]/"shape":[70,2]/' embedded.safetensors >shape.safetensors
sed '1s/"dtype":"F32"/"dtype":"I32"/g' embedded.safetensors >dtype.safetensors
head -c 2000 embedded.safetensors >short.safetensors
head -c 100 embedded.safetensors >header.safetensors
check 'a weight that is missing' lacks 'it has no tensor table, which the model wants as F32[20, 7]' missing.safetensors
check 'a weight of another shape' lacks 'table is F32[70, 2], but the model wants F32[20, 7]' shape.safetensors
check 'a weight of another dtype' lacks 'scale is I32[3], but the model wants F32[3]' dtype.safetensors
check 'weights that are cut short' lacks '' short.safetensors
check 'a header that is cut short' lacks 'not a safetensors file, or truncated' header.safetensors
check 'weights that are none' lacks 'not a safetensors file' "$here/run.sh"

# A program begins with as many threads as it was planned for, and no more than OpenMP and the cores
# have; without OpenMP it is alone.
begins() { # THREADS: with what the environment says
    [ "$(./begins)" = "$1" ]
}
threads() {
    cat >begins.c <<'END' && "$gplan" "$here/layers.g" --quiet -o default.c --prefix layers &&
#include "default.h"
#include <stdio.h>
int main(void)
{
    static layers m;
    static _Alignas(64) unsigned char arena[LAYERS_ARENA_BYTES];
    return layers_init(&m, arena, sizeof arena) != LAYERS_OK || printf("%d\n", m.threads) < 0;
}
END
        grep -q '_THREADS_MAX 8$' default.h && cores=$(nproc) && usual=$((cores < 8 ? cores : 8)) &&
        gcc -fopenmp begins.c default.c -o begins -lm && begins $usual &&
        OMP_NUM_THREADS=1 begins 1 && OMP_NUM_THREADS=64 begins $usual &&
        gcc begins.c default.c -o begins -lm && begins 1 &&
        "$gplan" "$here/layers.g" --quiet -o default.c --prefix layers --threads 1 &&
        gcc -fopenmp begins.c default.c -o begins -lm && begins 1
}
check 'threads that a program begins with' threads

# Every compiler, level and threads or not, without a warning; the header in C++ too.
for model in layers memory dtypes; do
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        for flags in '-O0 -DGPLAN_POISON -DGPLAN_CHECK_NAN -DGPLAN_PROFILE' '-O3 -fopenmp' '-O3'; do
            # shellcheck disable=SC2086
            check "$compiler $flags $model" $compiler $strict $flags -c $model.c -o object.o
        done
    done
    check "C++ $model" g++ -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only $model.h
done

# Two models in one program, two instances of one.
both() {
    for name in affine double layers; do
        # shellcheck disable=SC2086
        gcc $strict $sanitize -c $name.c -o $name.o || return 1
    done
    # shellcheck disable=SC2086
    g++ -Wall -Wextra -Wpedantic -Werror $sanitize -I. "$here/both.cpp" affine.o double.o layers.o \
        -lm -o both && ./both
}
check 'two models in C++' both

# A model may have any name: keywords, the C library's, those of the emitted file itself.
any_name() {
    for name in int class m begin data constants forward_0 list_2 powf errno EINTR O_CREAT SAVED Gp; do
        sed "s/^model files/model $name/" "$here/files.g" | "$gplan" - -o named.c &&
            gcc $strict -fsyntax-only -DGPLAN_PROFILE -DGPLAN_POISON -DGPLAN_CHECK_NAN named.c &&
            g++ -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only named.h || return 1
    done
    sed 's/^model files/model f/' "$here/files.g" | "$gplan" - -o named.c &&
        printf '#include <unistd.h>\n#include "named.h"\n' | gcc -I. -x c -fsyntax-only -
}
check 'any name' any_name

# The same bytes every time; nothing left of a file that could not be written.
again() { emit layers layers2 && sed 's/layers2/layers/g' layers2.c | cmp - layers.c; }
check 'the same bytes' again
full_disk() {
    mkdir full && (trap '' XFSZ && ulimit -f 8 && emit layers full/layers) 2>message
    [ $? -eq 1 ] && grep -q 'cannot be written' message && [ -z "$(ls full)" ]
}
check 'a full disk' full_disk
no_folder() {
    ! emit layers no/such/folder 2>message && grep -q 'no/such/folder.c: cannot be written' message
}
check 'no such folder' no_folder
full_pipe() { ! "$gplan" "$here/layers.g" --emit c >/dev/full 2>message && grep -q written message; }
check 'a full standard output' full_pipe

# Long constants lie beside the text, all three files or none; trained parameters are never lost.
constants_together() {
    mkdir three && emit lookup three/m && [ "$(ls three | tr '\n' ' ')" = 'm.c m.h m.safetensors ' ] &&
        ! grep -q '250, 249' three/m.c && grep -q '61, 62' three/m.c && emit lookup three/m &&
        echo trained >three/m.safetensors && cp three/m.c kept.c && : >three/m.c &&
        ! emit lookup three/m 2>message && grep -q 'm.safetensors: it exists, and is not a file that gplan wrote' message &&
        [ "$(cat three/m.safetensors)" = trained ] && [ ! -s three/m.c ] || return 1
    rm -r three && mkdir three three/m.safetensors &&
        ! emit lookup three/m 2>message && grep -q 'm.safetensors: ' message &&
        [ "$(ls three)" = m.safetensors ] &&
        ! "$gplan" "$here/lookup.g" --emit c >output 2>message && grep -q 'give -o' message &&
        [ ! -s output ]
}
check 'constants beside the text' constants_together

# The example application: new parameters, an image, and files that are wrong.
app() {
    cp -r "$here/../../examples/app" app && cp "$here/../../examples/mlp.g" . &&
        make -s -C app clean digits GPLAN="$gplan" CFLAGS="-Wall -Wextra -Wpedantic -Werror $sanitize" &&
        app/digits --new digits.safetensors &&
        { printf 'P5 28 28 255\n' && head -c 784 /dev/zero; } >blank.pgm &&
        app/digits digits.safetensors blank.pgm | grep -q '^blank.pgm: [0-9] ([0-9.]*%)$' &&
        ! app/digits nowhere blank.pgm 2>message && grep -q 'nowhere: cannot be opened' message &&
        head -c 100 blank.pgm >cut.pgm && ! app/digits digits.safetensors cut.pgm 2>message &&
        grep -q 'cut.pgm: is cut short' message
}
check 'the application' app

# Of the runtime only what the program reaches: every function, type and macro is named again.
# A macro pastes the names GP_ROWS_1 and so on.
unnamed() { # FILE: names that it defines and says once
    sed -n -e 's/^#define \(GP_[A-Z0-9_a-z]*\).*/\1/p' -e 's/^} \(gp_[a-z0-9_]*\);/\1/p' \
        -e 's/^\(static\|GP_FUNCTION\|GP_HOST\)[^(=;]*[ *]\(gp_[a-z0-9_]*\)(.*/\2/p' "$1" |
        sort -u >defined
    tr -c 'A-Za-z0-9_' '\n' <"$1" | grep '^[Gg][Pp]_' | sort | uniq -u |
        grep -v '^GP_ROWS_' | comm -12 - defined
}
reached() { # MODEL TARGET
    "$gplan" "$here/$1.g" --quiet -o "reached.$2" && unnamed "reached.$2" >unnamed &&
        diff /dev/null unnamed
}
for model in ../../examples/gpt2 ../../examples/resnet50 ../costs/digits layers; do
    check "what the program of $model reaches" reached "$model" c
    check "what $model reaches in CUDA" reached "$model" cu
done

# An op between those of a layer does not cut the loop.
guests() {
    "$gplan" "$here/guests.g" --quiet -o guests.c && grep -q 'if (i == 2)' guests.c &&
        [ "$(grep -c '^ *OP(' guests.c)" -eq 3 ] || return 1
    for flags in -DPLAIN '-DGPLAN_POISON -DGPLAN_CHECK_NAN'; do
        # shellcheck disable=SC2086
        gcc $strict $sanitize $flags -I. guests.c "$here/guests.c" -lm -o guests && ./guests || return 1
    done
}
check 'an op between those of a layer' guests

# Of the ways of its kernels those that its shapes can take, after a check that they do.
ways() {
    "$gplan" "$here/../costs/digits.g" --quiet -o digits.c &&
        ! grep -q 'gp_wino_conv\|gp_thin_tile\|gp_softmax_stream\|GP_WAY' digits.c &&
        grep -q 'GP_PLANNED(!(gp_conv_is_wino(v)));' digits.c &&
        "$gplan" "$here/../../examples/resnet50.g" --quiet -o resnet50.c &&
        grep -q 'if (gp_conv_is_wino(v)) {' resnet50.c && grep -q gp_wino_conv resnet50.c &&
        ! grep -q gp_depthwise_run resnet50.c
}
check 'ways of kernels' ways

# A way that was left out ends the program, rather than that it computes something else: here a setting
# is changed behind gplan's back.
unplanned() {
    "$gplan" "$here/../costs/digits.g" --quiet -o digits.c &&
        sed -i 's/\.label_smoothing = 0,/.label_smoothing = 0.1,/' digits.c && cat >unplanned.c <<'EOF'
#include "digits.h"
#include <stdlib.h>
int main(void)
{
    digits m;
    float loss;
    void *arena = aligned_alloc(DIGITS_ARENA_ALIGN, DIGITS_ARENA_BYTES);
    if (!arena || digits_init(&m, arena, DIGITS_ARENA_BYTES) != DIGITS_OK)
        return 1;
    digits_reset(&m, 1);
    for (int i = 0; i < DIGITS_IMAGES_COUNT; i++)
        digits_images(&m)[i] = 1;
    for (int i = 0; i < DIGITS_LABELS_COUNT; i++)
        digits_labels(&m)[i] = i % 10;
    return digits_eval(&m, &loss);
}
EOF
    # shellcheck disable=SC2086
    gcc -O1 -I. unplanned.c digits.c -lm -o unplanned || return 1
    ./unplanned 2>unplanned.err
    [ $? -gt 128 ] && grep -q 'not planned for this: !(smooth > 0)' unplanned.err
}
check 'a way that was left out ends the program' unplanned

# Two ops that read lines, of which one says no word of 16 bits.
lines_of_two() {
    printf 'model two(batch B = 4)\ninput x : f32[B, 8]\noutput y = %s\n' \
        'sum(cast(x, i32)) + argmax(mean(x, axis = 0), axis = 0)' >two.g
    "$gplan" two.g --quiet -o two.c && gcc -std=c11 -Werror -shared -fPIC -Wl,-z,defs two.c -lm -o two.so
}
check 'integers beside reals are read without what reads 16 bits' lines_of_two

# What is decided when a file is written is not left to the C compiler.
decided() {
    "$gplan" "$here/../costs/digits.g" --quiet -o digits.c && ! grep -iq 'micro-\?batch\|micros\|GP_CUDA' digits.c &&
        "$gplan" "$here/../costs/digits.g" --quiet --accumulate 2 -o digits.c && grep -q 'GP_PARTS(run)' digits.c &&
        "$gplan" "$here/../costs/digits.g" --quiet -o digits.cu && grep -q '^#define GP_CUDA' digits.cu
}
check 'conditions that are decided' decided

# Every example, with and without training: no line is longer than 100 columns, and layers are loops.
lines() {
    for example in "$here"/../../examples/*.g; do
        for options in '' --infer; do
            # shellcheck disable=SC2086
            "$gplan" "$example" $options --quiet -o lines.c &&
                awk -v name="$example $options" 'length > 100 { print name ": " $0; bad = 1 } END { exit bad }' \
                    lines.c lines.h || return 1
        done
    done
}
check 'lines of emitted files' lines
loops() { # forward and backward, from the last layer on; updates pass over the table of tensors
    "$gplan" "$here/../../examples/gpt2.g" --quiet -o gpt2.c && cat gpt2.c gpt2.h | wc -l &&
        [ "$(cat gpt2.c gpt2.h | wc -l)" -le 5000 ] && [ "$(grep -c ' OP(' gpt2.c)" -le 75 ] &&
        [ "$(grep -c 'for (int i = 0; i < 12; i++) {' gpt2.c)" -ge 2 ] &&
        grep -q 'for (int i = 11; i >= 0; i--) {' gpt2.c &&
        grep -q 'for (int i = 0; i < 196; i++) {' gpt2.c &&
        grep -q 'adamw_[0-9]*(run, TENSOR(3 + i), ROW(g), ' gpt2.c
}
check 'layers of a transformer are loops' loops
# Where the peak is in the last layer, and its steps cannot go back, the others follow it; the first
# ends in another way.
follow() {
    "$gplan" "$here/../../examples/bert.g" --quiet -o bert.c && cat bert.c bert.h | wc -l &&
        [ "$(cat bert.c bert.h | wc -l)" -le 6040 ] && [ "$(grep -c ' OP(' bert.c)" -le 130 ] &&
        grep -q 'for (int i = 10; i >= 0; i--) {' bert.c &&
        grep -q '((i) == 11 ? [0-9]* : [0-9]* + ' bert.c # the first lies elsewhere
}
check 'layers that follow one with less room are loops' follow

# 10,000 steps compile in less than a minute.
check 'emit many' emit many
for flags in -O2 '-O3 -march=native'; do
    # shellcheck disable=SC2086
    check "compile many $flags" timeout 600 gcc $strict $flags -c many.c -o many.o
done

# Layers that all differ, so that none share a function.
awk 'BEGIN { print "model apart(batch B = 1)\ninput x : f32[B, 3]\nh = x"
    for (i = 4; i < 404; i++) printf "h = softmax(relu(dense(h, %d)))\n", i
    print "output h" }' >apart.g
check 'emit apart' "$gplan" apart.g -o apart.c
for compiler in gcc clang; do
    # shellcheck disable=SC2086
    ! command -v "$compiler" >/dev/null ||
        check "compile apart with $compiler" "$compiler" $strict -O2 -c apart.c -o apart.o
done

finish
