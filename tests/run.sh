#!/bin/sh
# Runs every test of a build and counts. usage: tests/run.sh BUILD_FOLDER
# Criterion programs are BUILD_FOLDER/tests/*/*_test; tests/*/run.sh take the path of gplan and
# close with the line "N passed, M failed".
set -u
build=$1
case $build in /*) ;; *) build=$PWD/$build ;; esac
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0
failed=0
broken=''

count() { # NAME PASSED FAILED STATUS
    passed=$((passed + $2))
    failed=$((failed + $3))
    if [ "$3" -ne 0 ] || [ "$4" -ne 0 ] || [ "$2" -eq 0 ]; then
        [ "$3" -ne 0 ] || failed=$((failed + 1))
        broken="$broken $1"
        cat "$log"
    fi
    printf '%-40s %4d passed, %d failed\n' "$1" "$2" "$3"
}

for program in "$build"/tests/*/*_test; do
    name=${program#"$build"/tests/}
    [ -f "tests/$name.c" ] || continue # a test that is gone
    "$program" -j2 --color=never >"$log" 2>&1
    status=$?
    line=$(grep -o 'Tested: .*' "$log" | tail -n 1)
    good=$(echo "$line" | sed -n 's/.*Passing: *\([0-9]*\).*/\1/p')
    tested=$(echo "$line" | sed -n 's/Tested: *\([0-9]*\).*/\1/p')
    count "$name" "${good:-0}" "$((${tested:-0} - ${good:-0}))" "$status"
done

for runner in tests/*/run.sh; do
    "$runner" "$build/gplan" >"$log" 2>&1
    status=$?
    line=$(tail -n 1 "$log")
    good=$(echo "$line" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1/p')
    bad=$(echo "$line" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\2/p')
    count "$runner" "${good:-0}" "${bad:-0}" "$status"
done

[ -z "$broken" ] || echo "failed:$broken"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
