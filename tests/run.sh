#!/bin/sh
# Runs every test of a build, two at a time, and counts. usage: tests/run.sh BUILD_FOLDER [NAME...]
# Criterion programs are BUILD_FOLDER/tests/*/*_test, and under BUILD_FOLDER/cuda those that are
# linked with CUDA's kernels; suites are tests/*/run.sh, which take the path of gplan and close with
# the line "N passed, M failed". A NAME is a part of the names of those to run.
set -u
build=$1
shift
case $build in /*) ;; *) build=$PWD/$build ;; esac
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

wanted() { # TEST NAMES...
    test=$1
    shift
    [ $# -eq 0 ] && return 0
    for name in "$@"; do
        case $test in *"$name"*) return 0 ;; esac
    done
    return 1
}

for program in "$build"/tests/*/*_test "$build"/cuda/tests/*/*_test tests/*/run.sh; do
    test=${program#"$build"/}
    source=${test#cuda/}
    case $test in *_test) source=$(ls "$source.c" "$source.cpp" 2>/dev/null) ;; esac
    [ -f "$source" ] && [ -f "$program" ] || continue # a test that is gone
    wanted "$test" "$@" && echo "$test"
done >"$work/tests"

# What Criterion says of a program's tests, in `good` and `bad`.
counted() { # LOG
    line=$(grep -o 'Tested: .*' "$1" | tail -n 1)
    good=$(echo "$line" | sed -n 's/.*Passing: *\([0-9]*\).*/\1/p')
    tested=$(echo "$line" | sed -n 's/Tested: *\([0-9]*\).*/\1/p')
    bad=$((${tested:-0} - ${good:-0}))
}

# Leaves "passed failed" in the folder of the test; shows what it said where something failed.
run() { # TEST FOLDER
    log=$2/log
    begin=$(date +%s)
    case $1 in
    cuda/*_test) # emulated, so with a sample of what `make soak` runs
        GRADIENT_ELEMENTS=2 GPLAN_SOAK=200 "$build/$1" -j1 --color=never </dev/null >"$log" 2>&1
        status=$?
        counted "$log"
        ;;
    *_test)
        "$build/$1" -j1 --color=never </dev/null >"$log" 2>&1
        status=$?
        counted "$log"
        ;;
    *)
        "$1" "$build/gplan" </dev/null >"$log" 2>&1
        status=$?
        line=$(tail -n 1 "$log")
        good=$(echo "$line" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1/p')
        bad=$(echo "$line" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\2/p')
        ;;
    esac
    good=${good:-0}
    bad=${bad:-0}
    [ "$status" -eq 0 ] && [ "$good" -gt 0 ] || [ "$bad" -gt 0 ] || bad=1
    echo "$good $bad" >"$2/result"
    [ "$bad" -eq 0 ] || cat "$log"
    printf '%-40s %4d passed, %d failed, %4d s\n' "$1" "$good" "$bad" $(($(date +%s) - begin))
}

# Takes whatever nobody else has taken.
work_off() {
    while read -r test; do
        folder=$work/$(echo "$test" | tr / _)
        mkdir "$folder" 2>/dev/null && run "$test" "$folder"
    done <"$work/tests"
}
work_off &
work_off &
wait

passed=0
failed=0
broken=''
while read -r test; do
    read -r good bad <"$work/$(echo "$test" | tr / _)/result" || { good=0 && bad=1; }
    passed=$((passed + good))
    failed=$((failed + bad))
    [ "$bad" -eq 0 ] || broken="$broken $test"
done <"$work/tests"
[ -z "$broken" ] || echo "failed:$broken"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
