#!/bin/sh
# Every door by libFuzzer: [FUZZ_RUNS=10] tests/fuzz/fuzz.sh BUILD_FOLDER SECONDS DOOR...
# The doors share the time. What is found is left in build/fuzz/faults, what was learned in
# build/fuzz/DOOR, where the next run goes on. Of the models that the language took, one in a
# thousand is compiled and run, under the sanitizers too, and so are FUZZ_RUNS of all of them,
# since a short run takes few thousands.
set -u
build=$1
seconds=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
case $build in /*) ;; *) build=$PWD/$build ;; esac
gplan=$build/gplan
work=$root/build/fuzz
# shellcheck source=tests/fuzz/seeds.sh
. "$root/tests/fuzz/seeds.sh"
mkdir -p "$work/faults" "$work/accepted"
cd "$work" || exit 1
# A status that gplan does not have.
export ASAN_OPTIONS=allocator_may_return_null=1:exitcode=86
export UBSAN_OPTIONS=print_stacktrace=1:exitcode=86
each=$((seconds / $#))
[ "$each" -gt 0 ] || each=1
failed=0

# The names of ops and of their arguments, as words of a dictionary.
"$gplan" --ops | sed -n 's/^| `\([a-z_0-9]*\)(\(.*\))` .*/\1 \2/p' | tr -cs 'a-z_0-9' '\n' | sort -u |
    sed -n 's/..*/"&"/p' >language.dict
for word in lower upper size id alignment offset; do echo "\"$word\""; done >pack.dict
for word in node edge size= cost= work= once output; do echo "\"$word\""; done >remat.dict
"$gplan" --help | grep -o -- '--*[a-z][a-z-]*' | sort -u | sed 's/.*/"&"/' >command.dict
for word in dtype shape data_offsets __metadata__ F32 I32 step seed; do echo "\"$word\""; done >safetensors.dict

# The models of ONNX's own tests, where Debian's libonnx-testdata is installed.
seed_tests() { # FOLDER
    for model in /usr/share/libonnx-testdata/data/*/*/model.onnx; do
        name=${model%/model.onnx}
        [ -f "$model" ] && cp "$model" "$1/${name##*/}"
    done
}

fuzz() { # DOOR
    dict=''
    accepted=''
    [ "$1" = language ] && accepted=$work/accepted
    [ -f "$1.dict" ] && dict=-dict=$1.dict
    mkdir -p "$1"
    seeds "$1" "seeds_$1"
    [ "$1" = onnx ] && seed_tests "seeds_$1"
    # shellcheck disable=SC2086
    env ${accepted:+FUZZ_ACCEPTED="$accepted" FUZZ_SAMPLE="${FUZZ_RUNS:-10}"} \
        "$build/tests/fuzz/$1_door" "$work/$1" "$work/seeds_$1" $dict \
        -max_total_time="$each" -timeout=60 -rss_limit_mb=3000 -malloc_limit_mb=2000 \
        -max_len=60000 -close_fd_mask=3 \
        -print_final_stats=1 -artifact_prefix="$work/faults/$1_" >"$1.log" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$1.log")
    covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$1.log" | tail -n 1)
    found=$(find "$1" -type f | wc -l)
    taken=$(sed -n 's/^accepted: /, accepted /p' "$1.log")
    echo "$1: ${runs:-?} runs$taken, ${covered:-?} edges covered, $found inputs kept, status $status"
    [ "$status" -eq 0 ] && return
    failed=$((failed + 1))
    grep -aE 'FAULT|ERROR|SUMMARY|runtime error|Test unit written|exit status' "$1.log" | head -n 8
}

# A model of those that were taken, as a program of its own: model/net.c. 1: gplan refuses it so.
emit() { # OPTION...
    "$gplan" model/net.g --effort 1 --quiet "$@" -o model/net.c >model/log 2>&1
}

# At its smallest budget, where that is no more than 64M.
emit_least() {
    least=$("$gplan" model/net.g --effort 1 --quiet --accumulate 1 --min-budget 2>model/log) || return
    [ "$least" -le 67108864 ] && emit --budget "$least"
}

# The same in one of several ways, or as it is.
emit_one_way() { # NUMBER
    case $(($1 % 6)) in
    0) emit --budget 64M --threads 2 ;;
    1) emit --budget 64M --infer ;;
    2) emit --budget 64M --accumulate 2 ;;
    3) emit --budget 64M --chunked-loss always --epilogues never ;;
    4) emit_least ;;
    5) emit --budget 64M --recompute none ;;
    esac
    status=$?
    [ "$status" -eq 1 ] || [ "$status" -eq 2 ] || return "$status"
    emit --budget 64M
}

# 1: gplan refuses it, 2: it is like one before, 3: it is wrong.
run_accepted() { # FILE NUMBER
    rm -rf model && mkdir model
    sed '0,/^ *model  *[A-Za-z_0-9]*/s//model net/' "$1" >model/net.g
    emit_one_way "$2"
    case $? in
    0) ;;
    1) return 1 ;;
    *) return 3 ;;
    esac
    grep -q net_init model/net.h || return 1 # it has a name that was not changed
    sed '1,/^#include/d' model/net.c | cksum >model/sum
    grep -q -x -F -f model/sum sums && return 2
    cat model/sum >>sums
    programs=''
    grep -q 'int net_forward' model/net.h && programs=-DFORWARD
    grep -q 'int net_step' model/net.h && programs="$programs -DTRAIN"
    # shellcheck disable=SC2086
    clang -std=c11 -g -O1 -fsanitize=address,undefined,float-cast-overflow \
        -fno-sanitize-recover=undefined,float-cast-overflow -Imodel \
        $programs "$root/tests/fuzz/accepted.c" model/net.c -lm -o model/net >>model/log 2>&1 &&
        model/net >>model/log 2>&1 || return 3
}

for door; do
    fuzz "$door"
done
compiled=0
refused=0
alike=0
number=0
: >sums
for model in accepted/*; do
    [ -f "$model" ] || continue
    number=$((number + 1))
    run_accepted "$model" "$number"
    case $? in
    0) compiled=$((compiled + 1)) ;;
    1) refused=$((refused + 1)) ;;
    2) alike=$((alike + 1)) ;;
    *)
        failed=$((failed + 1))
        cp model/net.g "faults/accepted_$(basename "$model").g"
        echo "accepted, but wrong: build/fuzz/faults/accepted_$(basename "$model").g"
        head -n 12 model/log
        ;;
    esac
    rm -f "$model"
done
echo "of the models taken, $compiled were compiled and run; $alike were like one before," \
    "$refused are refused as a program"
[ "$failed" -eq 0 ]
