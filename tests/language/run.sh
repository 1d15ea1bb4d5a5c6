#!/bin/sh
# Golden tests of the language. usage: run.sh [--bless] GPLAN
#
#   NAME.g + NAME.err    exactly these messages on standard error, exit status 1
#   NAME.g + NAME.dump   exactly this from gplan --infer -d lower, exit status 0; a line `# pass: train`
#                        in NAME.g asks for that pass instead
#
# A line `# args: -D B=4` in NAME.g is given to gplan, a line `# trains` leaves --infer out. What is too large for a file is made here.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
cd "$here" || exit 1

report() { # NAME WHAT-IS-WRONG ("" for nothing); in a file, since a pipe has its own variables
    if [ -z "$2" ]; then
        echo passed >>"$work/results"
    else
        echo failed >>"$work/results"
        echo "FAILED $1: $2"
    fi
}

golden() { # NAME.g EXPECTED STATUS-WANTED ACTUAL STATUS
    if [ "$5" -ne "$3" ]; then
        report "$1" "exit status $5, not $3"
        cat "$work/err"
    elif [ -n "$bless" ]; then
        cp "$4" "$2"
        report "$1" ''
    elif diff -u "$2" "$4"; then
        report "$1" ''
    else
        report "$1" 'differs'
    fi
}

# prints NAME.g ARGS: the text that gplan prints of it is the same model.
prints() {
    "$gplan" --emit g "$1" >"$work/$1" 2>"$work/err" || { report "$1" 'is not printed'; return; }
    # shellcheck disable=SC2086 # args are words
    "$gplan" --color=never $infer -d "$pass" $2 "$work/$1" >"$work/again" 2>"$work/err"
    if diff -u "$work/out" "$work/again"; then
        report "$1" ''
    else
        report "$1" 'is another model when it is printed'
    fi
}

for model in *.g; do
    name=${model%.g}
    args=$(sed -n 's/^# args: *//p' "$model")
    infer=$(grep -q '^# trains$' "$model" || echo --infer)
    pass=$(sed -n 's/^# pass: *//p' "$model")
    pass=${pass:-lower}
    # shellcheck disable=SC2086 # args are words
    "$gplan" --color=never $infer -d "$pass" $args "$model" >"$work/out" 2>"$work/err"
    status=$?
    if [ -e "$name.err" ]; then
        golden "$model" "$name.err" 1 "$work/err" $status
    elif [ -e "$name.dump" ]; then
        golden "$model" "$name.dump" 0 "$work/out" $status
        prints "$model" "$args"
    else
        report "$model" 'has neither .err nor .dump'
    fi
done

head='model m(batch B = 8)
input x : f32[B, 4]'

repeat() { # COUNT TEXT
    awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", text }'
}

# refuses NAME PATTERN: the model on standard input is an error like the pattern, soon.
refuses() {
    cat >"$work/$1.g"
    timeout 300 "$gplan" --color=never --infer -d lower "$work/$1.g" >/dev/null 2>"$work/err"
    status=$?
    if [ $status -ne 1 ]; then
        report "$1" "exit status $status"
    elif ! head -n 1 "$work/err" | grep -q -- "error: $2"; then
        report "$1" "said: $(head -c 300 "$work/err")"
    elif [ "$(wc -c <"$work/err")" -gt 4000 ]; then
        report "$1" "said too much"
    else
        report "$1" ''
    fi
}

accepts() { # NAME: the model on standard input
    cat >"$work/$1.g"
    timeout 300 "$gplan" --color=never --infer -d lower "$work/$1.g" >/dev/null 2>"$work/err"
    status=$?
    [ $status -eq 0 ] && report "$1" '' || report "$1" "status $status: $(head -c 300 "$work/err")"
}

printf '' | refuses empty_file 'the file is empty'
printf '\000\001\002' | refuses nul_bytes 'the file is not UTF-8 text'
printf '\211PNG\r\n\032\n' | refuses binary_junk 'the file is not UTF-8 text'
printf '%s\ny = \300\n' "$head" | refuses broken_utf8 'the file is not UTF-8 text'
printf '%s\ny = %s' "$head" "$(repeat 100000 '(')" | refuses deep_brackets 'brackets are nested'
printf '%s\ny = %s' "$head" "$(repeat 50000 'relu(')" | refuses deep_calls 'brackets are nested'
printf '%s\ny = %sx\n' "$head" "$(repeat 100000 '-')" | refuses deep_minus 'the expression is nested'
printf '%s\n%s' "$head" "$(repeat 300 'repeat i in 0..1 { ')" | refuses deep_repeats 'brackets are'
printf '%s\ny = %s\n' "$head" "$(repeat 100000 'abcdefghij')" | refuses long_name 'a name has at most'
printf '%s\ny = %s\n' "$head" "$(repeat 100000 '1234567890')" | refuses long_number 'the number does'
printf '%s\nk = 1%s + zz\n' "$head" "$(repeat 100000 ' + 1')" | refuses long_line 'zz is not defined'
printf '%s\ny = x @ y # %s\n' "$head" "$(repeat 100000 '0123456789')" |
    refuses long_comment 'y is not defined'
printf '%s\nrepeat i in 0..1000000000 { y = relu(x) }\n' "$head" | refuses endless_repeat 'a repeat has'
printf '%s\nrepeat i in 0..1000000 { repeat j in 0..1000000 { k = i } }\n' "$head" |
    refuses nested_repeats 'the model is too large'
{
    printf '%s\nblock f0(a) { return a }\n' "$head"
    awk 'BEGIN { for (i = 1; i < 60; i++) printf "block f%d(a) { return f%d(f%d(a)) }\n", i, i - 1, i - 1 }'
    printf 'output y = relu(f59(x))\n'
} | refuses doubling_blocks 'the model is too large'
{
    printf '%s\nblock f0(a) { return a }\n' "$head"
    awk 'BEGIN { for (i = 1; i < 1000; i++) printf "block f%d(a) { return f%d(a) }\n", i, i - 1 }'
    printf 'output y = relu(f999(x))\n'
} | refuses chained_blocks 'blocks call each other'
printf '%s\n%s' "$head" "$(awk 'BEGIN { for (i = 0; i < 500; i++) printf "y%d = zz%d\n", i, i }')" |
    refuses many_errors 'zz0 is not defined'
printf '%s\ninput z : f32[4611686018427387904, 4]\n' "$head" | refuses huge_tensor 'f32\[4611'

printf '%s\noutput y = relu(x)' "$head" | accepts no_final_newline
printf '%s\noutput y = relu(x)\n' "$head" | sed 's/$/\r/' | accepts crlf
printf '%s\noutput y = x%s\n' "$head" "$(repeat 5000 ' + x')" | accepts long_sum
printf '%s\nk = 1%s\noutput y = x * k\n' "$head" "$(repeat 200000 ' + 1')" | accepts long_numbers

"$gplan" . 2>"$work/err"
[ $? -eq 1 ] && grep -q 'cannot read' "$work/err" && report directory '' || report directory wrong
"$gplan" "$work/none.g" 2>"$work/err"
[ $? -eq 1 ] && grep -q 'cannot open' "$work/err" && report missing '' || report missing wrong
printf '%s\noutput y = relu(z)\n' "$head" | "$gplan" - 2>"$work/err"
grep -q '^<stdin>:3:17: error' "$work/err" && report standard_input '' || report standard_input wrong

failed=$(grep -c failed "$work/results")
echo "$(grep -c passed "$work/results") passed, $failed failed"
[ "$failed" -eq 0 ]
