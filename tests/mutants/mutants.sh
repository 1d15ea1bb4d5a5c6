#!/bin/bash
# Puts small faults into the sources, one at a time, and sees whether the tests find them.
#
#     tests/mutants/mutants.sh COUNT SEED [FILE...]
#
# COUNT mutants are drawn over the files (default: all of runtime/c, planner and codegen). Each is
# tried in a copy of the project below build/mutants: the suites of its file in tests/mutants/suites,
# the cheapest first, to the first failure, within LIMIT seconds of CPU time. What came of a mutant
# is added to build/mutants/results.tsv and not tried again; AGAIN=1 tries survivors once more.
# CHECKED=1 goes on where nothing but sources changed since the last run, which tried every suite.
# tests/mutants/equivalent.tsv names those that change nothing, and why.
set -u
count=${1:?usage: mutants.sh COUNT SEED [FILE...]}
seed=${2:?usage: mutants.sh COUNT SEED [FILE...]}
shift 2
cd "$(dirname "$0")/../.." || exit 1
project=$PWD
home=$project/build/mutants
results=$home/results.tsv
limit=${LIMIT:-20}
workers=${WORKERS:-2}
mkdir -p "$home"
touch "$results"
TIMEFORMAT='%U %S'

# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(git ls-files 'runtime/c/*.h' 'planner/*.c' 'codegen/*.c')
gcc -std=c11 -O2 tests/mutants/mutate.c -o "$home/mutate" || exit 1

# ---- A copy of the project for each worker, built once ------------------------------------------

build() {
    CFLAGS='-Werror=int-conversion -Werror=incompatible-pointer-types -Werror=format' \
        make -s -j"${JOBS:-1}" OPTIMIZE='-O1 -g0' "$@"
}

# Without the table of kernels: plans and emitted text do not run it.
light() { build -o build/gcc/gen/adapters.o -o build/gcc/gen/cuda_work.o "$@"; }

random() { # FIRST COUNT
    models=build/gcc/tests/random/random_models
    light gplan $models && $models "$GPLAN" "$@"
}

cuda() { # PART...
    emulator=build/gcc/tests/cuda_on_cpu
    light gplan $emulator/emulator_test && tests/mutants/cuda.sh "$GPLAN" $emulator "$@"
}

sanitized() { # SUITE
    watched=build/gcc-sanitized/gplan
    make -s -j"${JOBS:-1}" SANITIZE=1 -o build/gcc-sanitized/gen/adapters.o \
        -o build/gcc-sanitized/gen/cuda_work.o $watched && "$1" $watched
}
export -f build light random cuda sanitized

# Lines of the table whose pattern fits the file: "PATTERN: COMMAND".
suites_of() { # FILE
    while IFS= read -r line; do
        pattern=${line%%: *}
        # shellcheck disable=SC2053
        [[ $1 == $pattern ]] && echo "${line#*: }"
    done < <(grep -v '^#' "$project/tests/mutants/suites" | grep .)
}

# One suite in the present folder: `test AREA/NAME [ARGUMENTS]` builds and runs a Criterion program,
# anything else is a command of the shell, which finds gplan in $GPLAN.
run_suite() { # COMMAND...
    case $1 in
    test)
        program=build/gcc/tests/$2
        shift 2
        build "$program" && timeout 120 "$program" -j1 --fail-fast --color=never "$@"
        ;;
    *) bash -c "$*" ;;
    esac
}

export GPLAN=./gplan FILE='' FIRST_FAILURE=1
fresh=$home/fresh
mkdir -p "$fresh"
git ls-files -z | while IFS= read -r -d '' file; do
    [ -f "$file" ] && ! cmp -s "$file" "$fresh/$file" && mkdir -p "$fresh/$(dirname "$file")" &&
        cp -p "$file" "$fresh/$file"
done
(cd "$fresh" && find . -name build -prune -o -type f -print) | sed 's|^\./||' | while IFS= read -r file; do
    [ -f "$file" ] || rm -f "$fresh/$file" # it was moved or is gone
done
[ -n "${CHECKED:-}" ] || echo 'building, and running every suite once without a fault'
[ -n "${CHECKED:-}" ] || (
    cd "$fresh" || exit 1
    JOBS=2 build gplan || exit 1
    for file in "$@"; do suites_of "$file"; done | sort -u >"$home/wanted"
    while IFS= read -r suite; do
        # shellcheck disable=SC2086
        { time run_suite $suite >"$home/log" 2>&1; } 2>"$home/time" || {
            tail -n 20 "$home/log"
            echo "fails without any fault: $suite"
            exit 1
        }
        read -r user system <"$home/time"
        printf '%8.1f s  %s\n' "$(echo "$user + $system" | bc)" "$suite"
    done <"$home/wanted"
) || exit 1
for worker in $(seq "$workers"); do
    rm -rf "$home/tree$worker"
    cp -a "$fresh" "$home/tree$worker"
done

# ---- One mutant ---------------------------------------------------------------------------------

# Puts back what a mutant changed, so that nothing is built twice.
restore() {
    find . -newer "$home/stamp$worker" -type f ! -path './tests/mutants/*' | while IFS= read -r file; do
        if [ -e "$fresh/$file" ]; then cp -p "$fresh/$file" "$file"; else rm -f "$file"; fi
    done
}

# What compilers say of a mutant that is no C.
no_c='Werror=int-conversion|Werror=incompatible-pointer'
no_c="$no_c|error: .*(undeclared|lvalue|invalid operands|invalid type argument|expected|implicit)"

limited() { # COMMAND...: a suite that may run for so long, into the worker's log
    (
        ulimit -t "$limit"
        run_suite "$@"
    ) >"$home/log$worker" 2>&1 </dev/null
}

try() { # ID CLASS WHERE BEFORE AFTER
    file=${3%:*}
    FILE=$file
    verdict=survived
    by=-
    spent=0
    touch "$home/stamp$worker"
    sleep 0.01
    "$home/mutate" apply "$1" "$file" >"$file.new" 2>/dev/null || { rm -f "$file.new"; return; }
    mv "$file.new" "$file"
    suites_of "$file" >"$home/suites$worker"
    [ -s "$home/suites$worker" ] || verdict=unwatched
    case $file in
    *.c) build "build/gcc/${file%.c}.o" >"$home/log$worker" 2>&1 || verdict=invalid ;;
    esac
    while [ $verdict = survived ] && IFS= read -r suite; do
        left=$(echo "$limit - $spent" | bc)
        [ "${left%%.*}" -gt 0 ] 2>/dev/null || { by='out of time'; break; }
        # shellcheck disable=SC2086
        { time limited $suite; } 2>"$home/time$worker" || { verdict=found; by=$suite; }
        read -r user system < <(tail -n 1 "$home/time$worker")
        spent=$(echo "$spent + $user + $system" | bc)
        case $file in *.h) # of a .c file it is known before
            [ $verdict = found ] && grep -qE "$no_c" "$home/log$worker" && verdict=invalid ;;
        esac
    done <"$home/suites$worker"
    restore
    flock "$results" printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" "$verdict" \
        "$by" "$spent" >>"$results"
    printf '%-9s %-9s %-36s %-30.30s -> %-20.20s %5.1f s  %s\n' "$verdict" "$2" "$3" "$4" "$5" \
        "$spent" "$by"
}

# ---- All of them, then the shares ------------------------------------------------------------------

if [ -n "${AGAIN:-}" ]; then
    cut -f1 tests/mutants/equivalent.tsv >"$home/same"
    grep -P '\tsurvived\t' "$results" | grep -vFf "$home/same" >"$home/survivors"
    cut -f1-5 "$home/survivors" >"$home/sample"
    grep -vxFf "$home/survivors" "$results" >"$results.new"
    mv "$results.new" "$results"
else
    "$home/mutate" sample "$count" "$seed" "$@" >"$home/sample"
fi
for worker in $(seq "$workers"); do
    (
        cd "$home/tree$worker" || exit 1
        number=0
        while IFS=$'\t' read -r id class where before after; do
            number=$((number + 1))
            [ $((number % workers)) -eq $((worker % workers)) ] || continue
            cut -f1 "$results" | grep -qx "$id" || try "$id" "$class" "$where" "$before" "$after"
        done <"$home/sample"
    ) &
done
wait

awk -F'\t' '
    FNR == NR { if ($0 !~ /^#/ && NF) same[$1] = 1; next }
    $6 == "invalid" { next }
    { folder = $3; sub(/\/[^\/]*$/, "", folder)
      if ($6 == "survived" && $1 in same) { equal[folder]++; seen[folder]; next }
      all[folder]++; seen[folder]; found[folder] += $6 == "found"
      if ($6 != "found") left[++lefts] = $3 "  " $2 "  " $4 " -> " $5 "  (" $1 ", " $6 ")" }
    END { for (i = 1; i <= lefts; i++) print "not found: " left[i]
          for (folder in seen) { printf "%-12s %4d mutants, %4d found (%.1f %%), %d change nothing\n",
                  folder, all[folder] + equal[folder], found[folder],
                  all[folder] ? 100 * found[folder] / all[folder] : 100, equal[folder]
              a += all[folder]; f += found[folder] }
          printf "%d of %d found: %.1f %%\n", f, a, a ? 100 * f / a : 100 }
' "$project/tests/mutants/equivalent.tsv" "$results"
