#!/bin/sh
# Budgets from the command line: what is printed is kept. usage: run.sh GPLAN
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
plan_for_one_thread
without_bless
cd "$here" || exit 1
models=../../examples

check() { # NAME; the status of the last command says how it went
    set -- "$1" $?
    cat "$work/out" "$work/err" >"$log" 2>/dev/null
    count "$@"
}

run() { "$gplan" "$@" --effort 5 >"$work/out" 2>"$work/err"; }

# The size that a hint has for so many bytes: hundredths of a unit, rounded up.
enough() { # BYTES
    awk -v n="$1" 'BEGIN { split("K M G", u); for (i = 3; i && n < 1024 ^ i; i--);
        if (!i) { print n; exit }
        h = int(n * 100 / 1024 ^ i); if (h * 1024 ^ i < n * 100) h++
        printf h % 100 ? "%d.%02d%s\n" : "%d%.0s%s\n", h / 100, h % 100, u[i] }'
}

# ---- The smallest budget is met, and one byte less is not.
smallest() { # NAME OPTIONS...
    name=$1
    shift
    least=$(least_budget "$@" --effort 5) && run "$@" --budget "$least" --report
    check "$name: the smallest budget is met"
    grep -q "^  arena" "$work/out"
    check "$name: it is reported"
    run "$@" --budget $((least - 1))
    [ $? -eq 1 ] && grep -q "does not fit" "$work/err" &&
        size=$(sed -n 's/.*hint: --budget \([0-9.]*[KMGT]*\) would fit, with.*/\1/p' "$work/err") &&
        [ -n "$size" ] && run "$@" --budget "$size" --report
    check "$name: a byte less is refused, and the budget that is named does"
}
smallest net net.g --accumulate 1
smallest mlp $models/mlp.g --accumulate 1
smallest lenet $models/lenet.g --accumulate 1
smallest gpt2 $models/gpt2.g -D L=2 -D C=48 -D T=32 -D V=100 --accumulate 1
smallest reserve net.g --reserve 64K --accumulate 1
smallest micro net.g --accumulate auto
smallest external net.g --io external --params external --accumulate 1

# ---- A misfit names the peak, what is live there, and what would fit.
least=$(least_budget net.g --effort 5)
run net.g --accumulate 1 --budget $((least * 95 / 100))
grep -q '^net.g:[0-9]*:[0-9]*: error: net does not fit' "$work/err"
check "a misfit has a place in the source"
grep -q 'the peak is here, at step' "$work/err" && grep -q 'note: .* f32\[512' "$work/err"
check "a misfit lists the largest tensors"
batch=$(sed -n 's/.*hint: -D B=\([0-9]*\) would fit.*/\1/p' "$work/err")
run net.g --accumulate 1 --budget $((least * 95 / 100)) -D B="${batch:-0}"
check "the batch that a misfit names does fit"

cat >"$work/kept.g" <<'END'
model kept(batch B = 4096, C = 64)
input x : f32[B, C]
input y : f32[B, C]
h = x
repeat i in 0..6 {
  h = relu(dense(h, C))
  keep h
}
train mse(h, y) using sgd(lr = 0.1)
END
kept=$(least_budget "$work/kept.g" --accumulate 1)
run "$work/kept.g" --accumulate 1 --budget $((kept * 95 / 100))
grep -q 'note: `keep` holds [0-9.]* MiB of it' "$work/err"
check "a misfit says what keep holds"
run net.g --accumulate 1 --budget 100K
! grep -q 'keep' "$work/err"
check "but not of a model without"

# ---- Of several hints the one that cannot be kept is named.
cat >"$work/hints.g" <<'END'
model hints(batch B = 16, C = 24)
input x : f32[B, C]
input y : i32[B]
param a : [C] = normal(0.5)
g = softmax(x * a)
h = tanh(g * a)
k = h * a
s = softmax(k * a)
recompute g
recompute h
keep k
train cross_entropy(s * h, y) using sgd(lr = 0.1)
END
run "$work/hints.g"
[ $? -eq 1 ] && grep -q 'hints.g:6:5: error: recompute: h cannot be recomputed' "$work/err"
check "a broken hint is named, not the first"

# ---- Larger budgets never cost more, and get what the table says.
"$gplan" net.g --effort 5 --pareto --emit csv >"$work/out" 2>"$work/err"
check "--pareto as csv"
awk -F, 'NR == 1 { next } NR > 2 && ($1 <= b || $2 >= e) { bad = 1 } { b = $1; e = $2 }
    END { exit bad || NR < 4 || e != 0 }' "$work/out"
check "--pareto: budgets rise, costs fall, the last recomputes nothing"
head -n 2 "$work/out" | tail -n 1 | grep -q "^$least,"
check "--pareto begins at the smallest budget"
"$gplan" net.g --effort 5 --pareto --emit json | tr -d ' \n' | grep -q '^\[{"budget":.*}\]$'
check "--pareto as JSON"
"$gplan" net.g --effort 5 --pareto | grep -q 'extra time'
check "--pareto as a table"

costs_fall() { # NAME OPTIONS...
    name=$1
    shift
    least=$(least_budget "$@" --effort 5)
    most=$("$gplan" "$@" --effort 5 --recompute none -d plan | sed -n 's/^arena \([0-9]*\),.*/\1/p')
    last=1000000
    good=0
    for part in 0 3 12 25 26 60 95; do
        run "$@" --budget $((least + (most - least) * part / 100)) --report
        [ $? -eq 0 ] || good=1
        now=$(sed -n 's/.*extra time, estimated *\([0-9.]*\)%.*/\1/p' "$work/out")
        awk -v now="$now" -v last="$last" 'BEGIN { exit !(now <= last) }' || good=1
        last=$now
    done
    [ $good -eq 0 ]
    check "$name: a larger budget costs no more"
}
costs_fall net net.g
costs_fall gpt2 $models/gpt2.g -D L=2 -D C=48 -D T=32 -D V=100 --accumulate 1
costs_fall lenet $models/lenet.g

# ---- Precision is the very last resort, and only where it may be used.
{
    printf 'model deep(batch B = 1024)\ninput x : f32[B, 64]\ninput y : f32[B, 1]\nh = x\n'
    printf 'repeat i in 0..24 { h = tanh(dense(h, 64)) }\ntrain mse(dense(h, 1), y) using sgd()\n'
} >"$work/deep.g"
deep="$work/deep.g --threads 1 --recompute none --accumulate 1 --quiet"
# shellcheck disable=SC2086 # options are words
{
    wide=$("$gplan" $deep --min-budget)
    half=$("$gplan" $deep --min-budget --precision bf16)
    [ "$half" -lt "$wide" ] && [ "$("$gplan" $deep --min-budget --precision auto)" = "$half" ]
    check "--min-budget uses bf16 where it may"
    ! "$gplan" $deep --budget "$half" -o "$work/deep.c" 2>"$work/err" &&
        grep -q -e '--precision bf16 would fit' "$work/err" && [ ! -e "$work/deep.c" ]
    check "bf16 is never chosen unasked, but named"
    chosen() { # WHAT OPTIONS...
        what=$1
        shift
        "$gplan" "$@" --precision auto --emit json 2>"$work/err" | grep '"choice"' | grep -q "$what"
    }
    chosen '"precision":"f32"' $deep --budget "$wide"
    check "bf16 is not chosen where f32 fits"
    chosen '"precision":"bf16".*"precision":"without it nothing fits"' $deep --budget "$half"
    check "bf16 is chosen where nothing else fits"
    chosen '"accumulate":2,.*"precision":"f32"' ${deep%--accumulate*} --quiet --budget $((wide - 64))
    check "micro-batches come before bf16"
    chosen '"precision":"f32"' ${deep%--recompute*} --accumulate 1 --quiet --budget "$half"
    check "recomputation comes before bf16"
    "$gplan" $deep --pareto --precision auto --emit json >"$work/out"
    grep -q "\"budget\": $half,.*\"precision\": \"bf16\"" "$work/out" &&
        grep -q "\"budget\": $wide,.*\"precision\": \"f32\"" "$work/out"
    check "--pareto has bf16 below what f32 needs"
}

# ---- What is f32 for an output is not kept in 16 bits too, and a table is rounded as it is packed.
{
    printf 'model tied(batch B = 64)\ninput ids : i32[B]\ninput next : i32[B]\n'
    printf 'param table : [512, 32]\nh = relu(dense(embedding(ids, table), 32))\n'
    printf 'logits = h @ transpose(table)\noutput logits\n'
    printf 'train cross_entropy(logits, next) using sgd(lr = 0.1)\n'
} >"$work/tied.g"
tied="$work/tied.g --threads 1 --precision bf16"
# shellcheck disable=SC2086 # options are words
{
    "$gplan" $tied -d fuse >"$work/out"
    [ "$(grep -c 'matmul cast.*# logits/cast$' "$work/out")" = 2 ] &&
        grep -q 'matmul (.*# logits$' "$work/out"
    check "an output of 16 bits is stored once, as f32, where nothing flows back from it"
    "$gplan" $tied --chunked-loss always -d fuse >"$work/out"
    grep -q 'linear_cross_entropy_grad' "$work/out" && ! grep -q 'rounded' "$work/out" &&
        ! grep -q 'scatter_add/copy' "$work/out"
    check "a chunked loss in bf16 needs no copy of the table, nor of its gradient"
}

# ---- An activation whose input is kept anyway is made again rather than kept too.
again() { # HINT: the arena where the backward pass has it
    printf 'model m(batch B = 512)\ninput x : f32[B, 64]\ninput y : f32[B, 64]\nh = x\nrepeat i in 0..6 {
  g = gelu(dense(h, 256))\n  %s\n  h = dense(g, 64)\n}\ntrain mse(h, y) using sgd()\n' "$1" >"$work/again.g"
    "$gplan" "$work/again.g" --threads 1 --recompute none -d plan | sed -n 's/^arena \([0-9]*\),.*/\1/p'
}
[ "$(again '')" -lt $(($(again 'keep g') - 4 * 512 * 256 * 4)) ]
check "gelu is kept by its input alone, unless the model says keep"

# ---- What a budget costs is the same wherever it is said: of the training step alone, over that of
# the model as it stands. Picked rows of the table, then the hint of a misfit.
extra_of() { # what the last run printed, as a report
    sed -n 's/.*extra time, estimated *\([0-9.]*\)%  of a training step.*/\1/p' "$work/out"
}
same_costs() { # NAME OPTIONS...
    name=$1
    shift
    "$gplan" "$@" --effort 5 --pareto --emit csv >"$work/table" 2>"$work/err"
    good=0
    rows=0
    for line in $(awk -F, 'NR == 2 || NR % 4 == 0 { print $1 "," $2 }' "$work/table"); do
        run "$@" --budget "${line%,*}" --report
        said=$(extra_of)
        rows=$((rows + 1))
        awk -v a="$said" -v b="${line#*,}" 'BEGIN { exit a == "" || a - b > 0.0051 || b - a > 0.0051 }' ||
            { echo "$line in the table, $said in the report" >>"$work/err" && good=1; }
    done
    [ $good -eq 0 ] && [ $rows -ge 3 ]
    check "$name: --pareto and --report say the same"
    least=$(sed -n 2p "$work/table" | cut -d, -f1)
    run "$@" --budget "$least" --report
    said=$(extra_of)
    run "$@" --budget "$least" --emit json && tr -d ' \n' <"$work/out" |
        grep -q '"time":{"of":"trainingstep"'
    percent=$(tr -d ' \n' <"$work/out" | sed 's/.*"extra_percent":\([0-9.e-]*\).*/\1/')
    awk -v a="$said" -v b="$percent" 'BEGIN { exit b == "" || a - b > 0.0051 || b - a > 0.0051 }'
    check "$name: the JSON says the same"
    run "$@" --budget "$least" --emit svg &&
        grep -q "[^0-9.]$said% extra time in a training step" "$work/out"
    check "$name: the picture says the same"
    run "$@" --budget $((least - 1))
    grep -q "budget [0-9.]*[KMGT]* would fit, with $said% extra time in a training step" "$work/err"
    check "$name: the hint says the same"
}
same_costs net net.g --accumulate 1
same_costs gpt2 $models/gpt2.g -D L=4 -D C=48 -D T=32 -D V=100 -D B=8
same_costs lenet $models/lenet.g --accumulate auto
micro=$("$gplan" net.g --effort 5 --budget 400K --accumulate 1 2>&1 | sed -n 's/.*hint: --accumulate \(.*\) would fit, with \(.*\)% extra.*/\1 \2/p')
run net.g --budget 400K --accumulate "${micro% *}" --report && [ "$(extra_of)" = "${micro#* }" ]
check "the hint for micro-batches says what the report says"
run net.g --infer --budget 64K --report
grep -q 'extra time, estimated .* of a forward pass' "$work/out" || grep -q 'in a forward pass' "$work/err"
check "without training it is of the forward pass"

# ---- The largest value.
for budget in 512K 700K; do
    most=$("$gplan" net.g --effort 5 --accumulate 1 --max B --budget $budget)
    run net.g -D B="$most" --budget $budget
    check "--max B at $budget: the value fits"
    run net.g -D B=$((most + 1)) --accumulate 1 --budget $budget
    [ $? -eq 1 ]
    check "--max B at $budget: the next does not"
done
run net.g --max Q --budget 1M
[ $? -eq 1 ] && grep -q 'no parameter Q' "$work/err"
check "--max of what is no parameter"
run net.g --max B --budget 1K
[ $? -eq 1 ] && grep -q 'does not fit even with B = 1' "$work/err"
check "--max where nothing fits"

# Values that make no model say nothing about memory: they are passed over, without a word.
largest() { # NAME NEXT MODEL OPTIONS...: the value fits, NEXT above it makes a model that does not
    name=$1
    next=$2
    shift 2
    run "$@" --max S
    most=$(cat "$work/out")
    [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -q "note: S = $((${most:-0} + next)), the next .* would need" "$work/err"
    check "$name: --max says what the next would need, and nothing else"
    run "$@" -D S="${most:-0}"
    check "$name: the value of --max fits"
    run "$@" -D S=$((${most:-0} + next))
    [ $? -eq 1 ] && grep -q 'does not fit' "$work/err"
    check "$name: the next that makes a model does not"
}
cat >"$work/fours.g" <<'END'
model fours(batch B = 1, S = 8)
input x : f32[B, S, S]
output y = transpose(reshape(x, [B, S/4, 4, S]), [0, 2, 1, 3]) @ transpose(x)
END
largest 'values that divide' 4 "$work/fours.g" --budget 1M
largest 'values that divide, from above' 4 "$work/fours.g" -D S=4096 --budget 1M
run "$work/fours.g" --max S --budget 64
[ $? -eq 1 ] && grep -q 'does not fit even with S = 4' "$work/err"
check "--max names the smallest value that makes a model"
sed 's/\[B, 512/[B, S/; s/batch B = 512/batch S = 100/; s/\[B/[S/' net.g >"$work/micro.g"
largest 'micro-batches that divide' 7 "$work/micro.g" --accumulate 7 --budget 600K
cat >"$work/rows.g" <<'END'
model rows(batch B = 2, S = 5)
input x : f32[B, S]
param table : [700, 64] = normal(0.02)
output y = relu(x @ table[0:S])
END
run "$work/rows.g" --max S --budget 1G
[ "$(cat "$work/out")" = 700 ] && grep -q 'note: no larger value of S nearby' "$work/err"
check "--max ends where no value makes a model"

# ---- A search that the time ends. What was found before is kept, and a misfit says that it may be
# none; a search that has time enough finds what it finds without a clock.
decoder="$models/gpt2.g -D C=128 -D L=6 -D T=64 -D V=512 -D H=8 -D B=4 --accumulate 1"
for seconds in 0.2 0.6 1.2; do
    "$gplan" $decoder --budget 25456640 --seconds $seconds >"$work/out" 2>"$work/err" ||
        grep -q 'does not fit so far: the search was cut' "$work/err"
    check "$seconds seconds: no misfit that may be none"
    "$gplan" $decoder --budget 64K --seconds $seconds >"$work/out" 2>"$work/err"
    [ $? -eq 1 ] && grep -q 'does not fit so far: the search was cut' "$work/err"
    check "$seconds seconds: a misfit says that the search was cut"
done
"$gplan" $decoder --min-budget --seconds 0.3 >"$work/out" 2>"$work/err" &&
    grep -q 'note: the search was cut' "$work/err"
check "--min-budget says that the search was cut"
gpt="$models/gpt2.g -D L=2 -D C=48 -D T=64 -D V=3000 -D B=8"
run $gpt --budget 12M --emit json && mv "$work/out" "$work/unhurried"
run $gpt --budget 12M --emit json --seconds 1000 && cmp "$work/out" "$work/unhurried"
check "time enough changes nothing"

# ---- Micro-batches.
run net.g --accumulate auto --budget 1G --report && grep -q '^  micro-batches  *1  more' "$work/out"
check "auto: one micro-batch where nothing asks for more"

# ---- Micro-batches that nobody asked for: where nothing else fits, and never before.
chosen() { # NUMBER: of micro-batches, in a report
    grep -q "^  micro-batches  *$1  .*: without them nothing fits" "$work/out"
}
run net.g --min-budget
least=$(sed -n '1s/^\([0-9]*\)$/\1/p' "$work/out")
with=$(sed -n '2s/^\([0-9]*\) --accumulate [0-9]*$/\1/p' "$work/out")
times=$(sed -n '2s/.* //p' "$work/out")
[ "$(wc -l <"$work/out")" -eq 2 ] && [ "${with:-1}" -lt "${least:-0}" ]
check "--min-budget: a line without micro-batches, and one with them"
run net.g --budget "$least" --report && [ ! -s "$work/err" ] && ! grep -q micro-batches "$work/out"
check "what fits without micro-batches runs in none, without a word"
run net.g --budget $((least - 1)) --report &&
    few=$(sed -n 's/.*note: a step runs in \([0-9]*\) micro-batches.*--accumulate 1 forbids.*/\1/p' "$work/err") &&
    [ "$(wc -l <"$work/err")" -eq 1 ] && [ "${few:-0}" -gt 1 ] && chosen "$few"
check "a byte less than fits without them takes what costs least, and says so in a line"
run net.g --budget $((least - 1)) --quiet -o "$work/micro.json" && [ ! -s "$work/err" ] &&
    "$gplan" verify "$work/micro.json" >"$work/out" &&
    grep -q "\"choice\": {\"accumulate\":$few,.*\"why\":{\"accumulate\":\"without them nothing fits" "$work/micro.json"
check "the JSON names the choice and why"
run net.g --budget "$with" --report && chosen "$times"
check "--budget takes the number with micro-batches as it stands"
run net.g --budget "$with" --accumulate "$times" --report && ! grep -q 'without them' "$work/out"
check "--budget takes the line with micro-batches as it is printed"
run net.g --budget $((with - 1))
[ $? -eq 1 ] && grep -q "does not fit: the smallest plan needs .*, in $times micro-batches, " "$work/err" &&
    ! grep -q 'hint: --accumulate' "$work/err" &&
    grep -q "hint: --budget $(enough "$with") would fit, in $times micro-batches, with" "$work/err"
check "where no number of them fits, the smallest is named"
run net.g --budget $((least - 1)) --accumulate 1
[ $? -eq 1 ] && grep -q "hint: --accumulate $few would fit, with" "$work/err"
check "--accumulate 1 forbids them, and the hint says what it costs"
sed 's/adamw(lr = 1e-3)/& { accumulate = 1 }/' net.g >"$work/stated.g"
run "$work/stated.g" --budget $((least - 1))
[ $? -eq 1 ] && run "$work/stated.g" --min-budget && [ "$(cat "$work/out")" = "$least" ]
check "accumulate = 1 in the file does so too"
sed 's/adamw(lr = 1e-3)/& { accumulate = 4 }/' net.g >"$work/stated.g"
run "$work/stated.g" --budget $((least - 1)) --report && grep -q '^  micro-batches  *4  in ' "$work/out" &&
    ! grep -q 'without them' "$work/out" && [ ! -s "$work/err" ]
check "accumulate = 4 in the file stands as it is"
run net.g --min-budget --accumulate auto && [ "$(cat "$work/out")" = "$with" ]
check "--min-budget --accumulate auto: the smallest of all, in one line"
run net.g --max B --budget $((least - 1))
plain=$(sed -n '1s/^\([0-9]*\)$/\1/p' "$work/out")
more=$(sed -n '2s/^\([0-9]*\) --accumulate [0-9]*$/\1/p' "$work/out")
times=$(sed -n '2s/.* //p' "$work/out")
[ "${plain:-512}" -lt 512 ] && [ "${more:-0}" -gt 512 ]
check "--max: a value without micro-batches, and one with them"
run net.g -D B="$plain" --budget $((least - 1)) --accumulate 1 && run net.g -D B="$more" --budget $((least - 1)) &&
    grep -q 'note: a step runs in ' "$work/err" &&
    run net.g -D B="$more" --budget $((least - 1)) --accumulate "$times"
check "--max: both values fit"
sed 's/^block layer(x) {/&\n  x = batchnorm(x)/' net.g >"$work/coupled.g"
run "$work/coupled.g" --budget 300K
[ $? -eq 1 ] && grep -q 'coupled.g:7:7: note: batchnorm.* over the whole batch.* cannot run in 2 micro' "$work/err" &&
    grep -q 'hint: over = micro' "$work/err" && ! grep -q 'hint: --accumulate' "$work/err"
check "an op that couples the samples is named, with its place and what to write"
sed 's/batchnorm(x)/batchnorm(x, over = micro)/' "$work/coupled.g" >"$work/own.g"
run "$work/own.g" --budget 300K --report && chosen '[0-9]*' &&
    grep -q 'note: .* micro-batches.*statistics of each micro-batch' "$work/err"
check "statistics of each micro-batch are said to be so"
"$gplan" net.g --budget $(((least + with) / 2)) --seconds 4 --effort 1000000 --report >"$work/out" 2>"$work/err" &&
    grep -q '^  micro-batches' "$work/out"
check "a search for a plan without them leaves time for one with them"

# ---- A loop that reads a parameter runs before its update, whatever it is joined with.
cat >"$work/product.g" <<'END'
model product(batch B = 4)
input x : f32[B, 8]
param s : [8] = ones
param u : [8] = ones
output y = x * (s * square(u))
train mean(y) using sgd(lr = 0.1)
END
run "$work/product.g" --budget 1G && run "$work/product.g" --min-budget
check "an update does not overtake a loop"

# ---- Slices and micro-batches, chosen together.
# Without forward: the whole logits that it leaves would hold the peak, whatever the step does.
gpt="$models/gpt2.g -D L=2 -D C=48 -D T=64 -D V=3000 -D B=8 --programs step,eval"
smallest 'gpt2, all open' $gpt
costs_fall 'gpt2, all open' $gpt
never=$(least_budget $gpt --chunked-loss never --effort 5)
always=$(least_budget $gpt --chunked-loss always --effort 5)
least=$(least_budget $gpt --effort 5)
[ "$least" -le "$never" ] && [ "$least" -le "$always" ] && [ "$least" -lt "$never" ]
check "a chunked loss makes the smallest budget smaller"
run $gpt --budget "$least" --report &&
    grep -q '^  chunked loss  *yes  logits are never stored' "$work/out"
check "a chunked loss is chosen where the budget asks for it, and the report says why"
run $gpt --budget "$least" --chunked-loss never
[ $? -eq 1 ] && grep -q "budget $(enough "$never") would fit" "$work/err"
check "--chunked-loss never is kept"
run $gpt -d simplify && ! grep -q linear_cross_entropy "$work/out"
check "nothing is sliced without a budget"
run $gpt --chunked-loss always -d simplify && grep -q linear_cross_entropy "$work/out"
check "--chunked-loss always is kept"
"$gplan" $gpt --effort 5 --pareto --emit csv >"$work/out" &&
    [ "$(sed -n 2p "$work/out" | cut -d, -f1)" = "$least" ] && grep -q ',yes$' "$work/out"
check "--pareto counts chunked losses in"
"$gplan" $gpt --effort 5 --pareto --emit json | tr -d ' \n' | grep -q '"chunked_loss":true,"precision":"f32"}'
check "--pareto as JSON says what is sliced"
most=$("$gplan" $gpt --effort 5 --max B --budget "$least")
[ "${most:-0}" -ge 8 ] && run $gpt -D B="$most" --budget "$least"
check "--max counts chunked losses in"
one="$gpt --accumulate 1 -D B=16"
small=$(($(least_budget $one --chunked-loss never -D B=4 --effort 5) - 1)) # too small for 4
run $one --budget "$small"
batch=$(sed -n 's/.*hint: -D B=\([0-9]*\) would fit, with a chunked loss, with .* time.*/\1/p' "$work/err")
[ "${batch:-0}" -ge 4 ] && run $one --budget "$small" -D B="$batch"
check "a misfit names a batch that a chunked loss makes fit"
run $models/oom_a.g --accumulate auto --budget 16G --report &&
    grep -q 'micro-batches  *4 .*: fewer would not fit' "$work/out"
check "fewer micro-batches that do not fit are not said to take more time"
run $gpt --budget "$least" --report && grep -q 'floor .*another choice may' "$work/out"
check "the floor says that it is of what was chosen"
run net.g --chunked-loss some
[ $? -eq 2 ]
check "--chunked-loss some"
wide="$models/oom_b.g -D S=64 -D B=32" # all that it is made of has a batch
least=$("$gplan" $wide --effort 5 --accumulate auto --min-budget)
run $wide --accumulate auto --budget "$least" --report &&
    grep -q '^  micro-batches .* in forward, eval, training step: fewer would not fit' "$work/out"
check "micro-batches are chosen, and the report says why"
run $wide --accumulate 1 --budget "$least"
hinted=$(sed -n 's/.*hint: --accumulate \([0-9]*\) would fit, with .* extra time.*/\1/p' "$work/err")
run $wide --accumulate "${hinted:-0}" --budget "$least"
check "the micro-batches that a misfit names do fit"

# ---- Hints are constraints.
sed 's/^block layer/checkpoint block layer/' net.g >"$work/check.g"
run "$work/check.g" -d plan --report
check "a checkpointed block is planned"
awk '/compute again/ { n = $3 } END { exit !(n >= 4) }' "$work/out"
check "a checkpointed block is computed again without any budget"
plain=$("$gplan" net.g -d plan --quiet | sed -n 's/^arena \([0-9]*\),.*/\1/p')
small=$("$gplan" "$work/check.g" -d plan --quiet | sed -n 's/^arena \([0-9]*\),.*/\1/p')
[ "$small" -lt "$plain" ]
check "a checkpointed block takes less"
sed 's/^output z/keep h\noutput z/; s/^block layer/checkpoint block layer/' net.g >"$work/keep.g"
run "$work/keep.g" --report
check "keep beside a checkpointed block"
cat >"$work/slope.g" <<'END'
model slope(batch B = 4)
input m : f32[B, 8]
checkpoint block c(z) {
  return z + tanh(layernorm(relu(z)))
}
h = c(m)
v = prelu(h)
train bce_with_logits(v, sigmoid(h)) using sgd(lr = 0.05)
END
run "$work/slope.g" --report && grep -q 'compute again' "$work/out"
check "a block that runs in one loop with a parameter is computed again before the update"
cat >"$work/both.g" <<'END'
model both(batch B = 64)
input x : f32[B, 64]
input y : i32[B]
h = relu(dense(x, 256))
k = relu(dense(h, 256))
recompute h
keep k
output z = dense(k, 10)
train cross_entropy(z, y) using sgd(lr = 0.1)
END
run "$work/both.g" --report && grep -q 'compute again' "$work/out"
check "recompute is honoured without a budget"
least=$(least_budget "$work/both.g" --effort 5)
run "$work/both.g" --accumulate 1 --budget $((least - 1))
[ $? -eq 1 ]
check "a budget below what the hints need is refused"

# ---- Threads have workspace of their own: the report says how much, a misfit how many would fit.
run $models/lenet.g --threads 8 --report && grep -q '^  threads  *8  the largest workspace is' "$work/out"
check "the report says what threads cost"
run $models/lenet.g --report && ! grep -q '^  threads' "$work/out"
check "one thread costs nothing"
most=$(least_budget $models/lenet.g --threads 8 --effort 5)
least=$(least_budget $models/lenet.g --threads 1 --effort 5)
for budget in $((most - 1)) $(((most + least) / 2)) "$least"; do
    run $models/lenet.g --accumulate 1 --threads 8 --budget "$budget"
    threads=$(sed -n 's/.*hint: --threads \([0-9]*\) would fit, with.*/\1/p' "$work/err")
    [ "${threads:-8}" -lt 8 ] && run $models/lenet.g --accumulate 1 --threads "$threads" --budget "$budget"
    check "$budget bytes: fewer threads fit, as is said"
    run $models/lenet.g --accumulate 1 --threads $((threads * 2)) --budget "$budget"
    [ $? -eq 1 ]
    check "$budget bytes: more of them would not"
done
run $models/lenet.g --accumulate 1 --threads 8 --budget $((least - 1))
! grep -q -- '--threads' "$work/err"
check "no number of threads is named where none would fit"

# ---- Cut short, the best plan so far comes out.
"$gplan" $models/gpt2.g -D L=4 -D T=64 -D V=1000 --accumulate 1 --effort 1000000 --budget 12M \
    -D C=96 --report -o "$work/cut.json" >"$work/out" 2>"$work/err" &
sleep 3
kill -INT $!
wait $! && grep -q 'cut short' "$work/out" && [ -s "$work/cut.json" ]
check "ctrl-C writes the best plan so far"
"$gplan" $models/gpt2.g -D L=4 -D T=64 -D V=1000 -D C=96 --accumulate 1 --effort 1000000 \
    --seconds 2 --budget 12M --report >"$work/out" 2>"$work/err" && grep -q 'cut short' "$work/out"
check "--seconds cuts the search, and the report says so"

# ---- Several choices are searched one after the other: the seconds shown go on all the time.
script -qec "'$gplan' $models/letters.g --accumulate 1 --effort 60 --budget 26M -o '$work/seen.json'" \
    "$work/seen" >"$work/out"
tr '\r' '\n' <"$work/seen" | grep -o '[0-9]* s  ' |
    awk '$1 < last { back = 1 } { last = $1 } END { exit back || NR < 2 }'
check "progress shows one clock"

# ---- Programs that nobody calls take no memory, and a misfit says where outputs hold the peak.
gpt="$models/gpt2.g -D L=1 -D C=48 -D T=256 -D V=3000 -D B=8 --accumulate 1"
all=$(least_budget $gpt --effort 5)
some=$(least_budget $gpt --programs step,eval --effort 5)
[ "${some:-$all}" -lt "$all" ] && run $gpt --programs step,eval --budget "$some" --report &&
    grep -q '^  programs  *step,eval ' "$work/out" && run $gpt --programs step,eval -o "$work/some.json" &&
    "$gplan" verify "$work/some.json" >"$work/out"
check "a step without forward needs less"
run $gpt --budget $((all - 1))
[ $? -eq 1 ] && grep -q 'note: outputs hold .* of it, logits most' "$work/err" &&
    grep -q 'hint: --programs step,eval would fit, with' "$work/err" &&
    grep -q 'hint: --io external would fit, with' "$work/err"
check "where an output holds the peak, a misfit says so and what would fit"
run $gpt --programs step,eval --budget $((all - 1)) && run $gpt --io external --budget $((all - 1))
check "both fit as is said"
for list in '' step,step2 ,step 'step,' 'step eval' update; do
    run net.g --programs "$list"
    [ $? -eq 2 ] && grep -q 'expected some of forward,eval,step' "$work/err"
    check "--programs '$list' is refused"
done
run net.g --programs step --infer
[ $? -eq 2 ]
check "--programs beside --infer"
run "$work/rows.g" --programs step
[ $? -eq 1 ] && grep -q 'error: --programs: the model has no train statement' "$work/err"
check "--programs step of a model that does not train"

# ---- Wrong usage.
for budget in 0 -1 1e30 10X '' 1.2.3 nan; do
    run net.g --budget "$budget"
    [ $? -eq 2 ] && [ -s "$work/err" ]
    check "--budget '$budget' is refused"
done
run net.g --max B
[ $? -eq 2 ]
check "--max without a budget"
run net.g --pareto --emit svg
[ $? -eq 2 ]
check "--pareto as svg"
run net.g --accumulate some
[ $? -eq 2 ]
check "--accumulate some"

# ---- What a target keeps for itself is no workspace.
printf 'model one(batch B = 2)\ninput x : f32[B, 3]\noutput y = relu(x)\n' >"$work/one.g"
run "$work/one.g" --target cuda --budget 1
[ $? -eq 1 ] && grep -q ' state of the run$' "$work/err" && ! grep -q ' workspace$' "$work/err"
check 'the state of the run is named'

finish
