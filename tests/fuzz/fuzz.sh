#!/bin/sh
# Every door by libFuzzer: tests/fuzz/fuzz.sh BUILD_FOLDER SECONDS DOOR...
# The doors share the time. What is found is left in build/fuzz/faults, what was learned in
# build/fuzz/DOOR, where the next run goes on. Of the models that the language took, one in a
# thousand is compiled and run, under the sanitizers too.
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
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
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

fuzz() { # DOOR
    dict=''
    [ -f "$1.dict" ] && dict=-dict=$1.dict
    mkdir -p "$1"
    seeds "$1" "seeds_$1"
    # shellcheck disable=SC2086
    FUZZ_ACCEPTED=$work/accepted "$build/tests/fuzz/$1_door" "$work/$1" "$work/seeds_$1" $dict -max_total_time="$each" \
        -timeout=60 -rss_limit_mb=3000 -malloc_limit_mb=2000 -max_len=60000 -close_fd_mask=3 \
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

# A model of those that were taken, as a program of its own. 2: it is too large, or has no name that
# could be changed to `net`.
run_accepted() { # FILE
    rm -rf model && mkdir model
    sed '0,/^ *model  *[A-Za-z_0-9]*/s//model net/' "$1" >model/net.g
    "$gplan" model/net.g --effort 1 --budget 64M --quiet --threads 2 -o model/net.c >model/log 2>&1 &&
        grep -q net_init model/net.h || return 2
    programs=''
    grep -q 'int net_forward' model/net.h && programs=-DFORWARD
    grep -q 'int net_step' model/net.h && programs="$programs -DTRAIN"
    # shellcheck disable=SC2086
    clang -std=c11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -Imodel \
        $programs "$root/tests/fuzz/accepted.c" model/net.c -lm -o model/net >>model/log 2>&1 &&
        timeout 60 model/net >>model/log 2>&1
}

for door; do
    fuzz "$door"
done
compiled=0
skipped=0
for model in accepted/*; do
    [ -f "$model" ] || continue
    run_accepted "$model"
    case $? in
    0) compiled=$((compiled + 1)) ;;
    2) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1))
        cp model/net.g "faults/accepted_$(basename "$model").g"
        echo "accepted, but does not compile or run: build/fuzz/faults/accepted_$(basename "$model").g"
        head -n 12 model/log
        ;;
    esac
    rm -f "$model"
done
echo "of the models taken, $compiled were compiled and run, $skipped were not"
[ "$failed" -eq 0 ]
