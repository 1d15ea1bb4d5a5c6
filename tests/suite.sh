# What the suites (tests/*/run.sh) share; sourced at their start, with their arguments:
#
#     . "$(dirname "$0")/../suite.sh"
#
# Leaves gplan (the program to test), here (the suite's folder), root (the project), work (an empty
# folder that goes at the end) as whole paths, and bless=yes for run.sh --bless GPLAN. Close with
# `finish`. FIRST_FAILURE=1 ends a suite where something fails.
# shellcheck shell=sh disable=SC2034
set -u
bless=''
[ "${1:-}" = --bless ] && { bless=yes; shift; }
[ $# -ge 1 ] || { echo "usage: $0 [--bless] GPLAN" >&2; exit 2; }
case $1 in /*) gplan=$1 ;; *) gplan=$PWD/$1 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
log=$work/log # of the command that is checked
loud=''       # yes: what a command printed is shown also where it passed
passed=0
failed=0

# For a suite that compares nothing with files of its folder.
without_bless() {
    [ -z "$bless" ] || exit 0
}

# For a suite whose budgets and figures are of plans for one thread, where it asks for no other number.
plan_for_one_thread() {
    cat >"$work/gplan" <<END
#!/bin/sh
case \${1:-} in pack | remat | verify) exec "$gplan" "\$@" ;; esac
exec "$gplan" --threads 1 "\$@"
END
    chmod +x "$work/gplan"
    gplan=$work/gplan
}

# The smallest budget without micro-batches that nobody asked for: the first line of the answer.
least_budget() { # OPTIONS...
    "$gplan" "$@" --min-budget >"$work/least" && head -n 1 "$work/least"
}

count() { # NAME STATUS: of a check; what the log has is shown where it failed
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        [ -z "$loud" ] || sed "s/^/$1: /" "$log"
    else
        failed=$((failed + 1))
        echo "failed: $1"
        head -n 30 "$log" 2>/dev/null
        [ -z "${FIRST_FAILURE:-}" ] || { finish; exit 1; }
    fi
    return "$2"
}

check() { # NAME COMMAND...
    name=$1
    shift
    "$@" >"$log" 2>&1
    count "$name" $?
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
