#!/bin/sh
# The pictures, the JSON file, the trace and the report of a few plans. usage: run.sh [--bless] GPLAN
# plan.KIND is what gplan writes of plan.g, to the last byte; --bless writes them anew. The
# page is used in headless Chromium where there is one, graphviz reads the DOT where it is.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
plan_for_one_thread
cd "$root" || exit 1
dir=$work

# ---- To the last byte
budget=1K
plan=tests/picture/plan.g
golden() { # FILE ARGUMENTS...
    file=tests/picture/$1
    shift
    COLUMNS=100 "$gplan" "$@" >"$dir/now" || return 1
    case $file in *.page) # without what every page has
        sed -n '/^<script>/,/^<\/script>/p; /^<\/script>/q' "$dir/now" >"$dir/data" &&
            mv "$dir/data" "$dir/now" ;;
    esac
    [ -z "$bless" ] || cp "$dir/now" "$file"
    diff -u "$file" "$dir/now"
}
for kind in svg json trace dot graph report; do
    check "$kind as it was drawn" golden plan.$kind $plan --budget $budget --emit $kind
done
check 'the page as it was filled' golden plan.page $plan --budget $budget --emit html
check 'a step with an epilogue' golden mlp.trace examples/mlp.g --infer --emit trace
check 'steps as long as they take' golden long.trace $plan --infer -D B=4096 --emit trace
check 'boxes as they were drawn' golden shut.dot $plan --emit dot --depth 1
check 'micro-batches as they were reported' golden micro.report $plan --accumulate 2 --report
check 'an inference as it was reported' golden infer.report $plan --infer --report
check 'a packing as it was drawn' golden pack.svg pack tests/picture/pack.csv --quiet --emit svg
without_bless

status() { # WANTED COMMAND...
    wanted=$1
    shift
    "$@" >"$dir/out" 2>&1
    [ $? -eq "$wanted" ] || { cat "$dir/out"; return 1; }
}
has() { grep -q -e "$2" "$1"; }
lacks() { ! grep -q -e "$2" "$1"; }
says() { # WORDS COMMAND...: refused, and it says why
    words=$1
    shift
    status 1 "$@" && has "$dir/out" "$words"
}

model=tests/picture/blocks.g
for kind in dot svg html json trace graph report; do
    for how in --infer --train; do
        check "$kind $how is written" "$gplan" $model $how --emit $kind -o "$dir/plan$how.$kind"
        "$gplan" $model $how --emit $kind >"$dir/again"
        check "$kind $how is the same each time" cmp "$dir/again" "$dir/plan$how.$kind"
    done
done
for kind in dot svg html json; do
    check "the extension picks $kind" "$gplan" $model --train -o "$dir/by_name.$kind"
    check "by extension as by name: $kind" cmp "$dir/by_name.$kind" "$dir/plan--train.$kind"
done

# ---- DOT
check 'blocks are clusters' has "$dir/plan--infer.dot" 'label="pair.1"'
check 'phases have colours' has "$dir/plan--train.dot" '#fbe3cc'
check 'the peak stands out' has "$dir/plan--infer.dot" 'the peak: '
"$gplan" $model --infer --depth 1 -o "$dir/shut.dot"
check 'a depth shuts blocks' lacks "$dir/shut.dot" 'pair.1.dense.0/matmul'
check 'a shut block is one box' has "$dir/shut.dot" '<b>iteration 1</b>'
check 'a graph has no offsets' lacks "$dir/plan--infer.graph" ' at 0x'
if command -v dot >/dev/null; then
    for file in "$dir"/plan*.dot "$dir"/plan*.graph "$dir/shut.dot"; do
        check "graphviz draws ${file##*/}" dot -Tsvg "$file" -o "$dir/dot.svg"
        check "graphviz is content with ${file##*/}" test ! -s "$dir/log"
    done
else
    echo 'graphviz is not installed: the DOT files are not drawn'
fi

# ---- SVG and HTML
check 'the map has a budget line' "$gplan" $model --train --budget 40K -o "$dir/budget.svg"
check 'the budget is in the map' has "$dir/budget.svg" 'budget 40.00 KiB'
check 'the map has both themes' has "$dir/plan--train.svg" 'prefers-color-scheme:dark'
check 'the map names its tensors' has "$dir/plan--train.svg" '<title>logits'
check 'the page fetches nothing' lacks "$dir/plan--train.html" 'https\{0,1\}://'
if command -v rsvg-convert >/dev/null; then
    check 'the map is SVG' rsvg-convert -o "$dir/map.png" "$dir/plan--train.svg"
fi

# ---- JSON
for how in --infer --train; do
    check "verify accepts the plan $how" "$gplan" verify "$dir/plan$how.json"
done
# Its order was moved back, and then packs smaller than what the search had found.
for model_of in lenet gpt2; do
    "$gplan" examples/$model_of.g --quiet --threads 8 --emit json >"$dir/moved.json"
    check "verify accepts the plan of $model_of" "$gplan" verify "$dir/moved.json"
done
sed 's/"bytes":128,"birth"/"bytes":127,"birth"/' "$dir/plan--train.json" >"$dir/small.json"
check 'verify refuses other sizes' says 'buffer' "$gplan" verify "$dir/small.json"
sed 's/"version": 3/"version": 4/' "$dir/plan--train.json" >"$dir/later.json"
check 'verify refuses a version it does not know' says 'version 3' "$gplan" verify "$dir/later.json"
sed '/"kind":"activation"/s/"birth"/"space":"host","birth"/' "$dir/plan--train.json" >"$dir/host.json"
check 'verify refuses a space it does not know' says "unknown space 'host'" "$gplan" verify "$dir/host.json"
sed '/"kind":"activation"/s/"birth"/"space":"caller","birth"/' "$dir/plan--train.json" >"$dir/host.json"
check 'verify refuses an activation with the caller' says "cannot be the caller's" "$gplan" verify "$dir/host.json"
sed '/"kind":"input"/s/"birth"/"space":"arena","birth"/' "$dir/plan--train.json" >"$dir/host.json"
check 'verify takes a space that is said' "$gplan" verify "$dir/host.json"
for key in bound floor persistent; do
    for number in 0 999999; do
        sed "s/\"$key\": *[0-9]*/\"$key\": $number/" "$dir/plan--infer.json" >"$dir/other.json"
        check "verify refuses a $key of $number" says "summary: .*$key" "$gplan" verify "$dir/other.json"
    done
done
head -c 1000 "$dir/plan--train.json" >"$dir/half.json"
"$gplan" $model --precision bf16 --emit json >"$dir/narrow.json"
check 'verify accepts 16 bits' "$gplan" verify "$dir/narrow.json"
sum() { sed -n "s/.*\"dtypes\":{.*\"$1\":{\"buffers\":\([0-9]*\),\"bytes\":\([0-9]*\)}.*/\2/p" "$dir/narrow.json"; }
sed "s/\(\"dtypes\":.*\"bf16\":{[^}]*\"bytes\":\)$(sum bf16)}/\11$(sum bf16)}/" "$dir/narrow.json" >"$dir/other.json"
check 'verify refuses another sum of a dtype' says 'summary: dtypes' "$gplan" verify "$dir/other.json"
"$gplan" examples/lenet.g -D B=512 --precision bf16 -o "$dir/narrow.svg"
check 'the map says what has 16 bits' grep -q '. bf16</text>' "$dir/narrow.svg"
check 'and how many bytes that is' grep -q '>f32 [^<]*, bf16 [^<]*<' "$dir/narrow.svg"
check 'verify refuses half a file' says 'no JSON' "$gplan" verify "$dir/half.json"
check 'verify refuses a model' says 'no JSON' "$gplan" verify $model
check 'verify refuses a file that is not there' says 'cannot open' "$gplan" verify "$dir/none.json"
{ cat "$dir/plan--train.json" && head -c 20000000 /dev/zero | tr '\0' ' '; } >"$dir/large.json"
check 'verify takes a plan that is longer than a text may be' "$gplan" verify "$dir/large.json"
check 'verify wants one file' status 2 "$gplan" verify
check 'verify reads standard input' sh -c '"$1" verify - <"$2"' sh "$gplan" "$dir/plan--train.json"
for example in gpt2 unet densenet121 lstm; do
    "$gplan" examples/$example.g --infer -o "$dir/$example.json"
    check "verify accepts $example" "$gplan" verify "$dir/$example.json"
done
cat >"$dir/strides.g" <<'END'
model strides
input x : f32[1, 2, 8, 8]
output y = conv2d(x, 3, kernel = 3, stride = 2)
END
"$gplan" "$dir/strides.g" --quiet --emit json | sed 's/"stride":\[2,2\]/"stride":[2]/' >"$dir/other.json"
check 'verify refuses a list for fewer axes' says 'stride has 1 numbers, not 2' "$gplan" verify "$dir/other.json"
"$gplan" $model --train --accumulate 2 --threads 3 -o "$dir/micro.json"
check 'verify accepts micro-batches' "$gplan" verify "$dir/micro.json"
"$gplan" $model --infer --io external --params external -o "$dir/external.json"
check 'verify accepts memory of the caller' "$gplan" verify "$dir/external.json"

# ---- Report and usage
COLUMNS=100 "$gplan" $model --train --report >"$dir/wide"
COLUMNS=40 "$gplan" $model --train --report >"$dir/narrow"
check 'a wide report has a sketch' has "$dir/wide" 'The arena over time'
check 'a narrow report has none' lacks "$dir/narrow" 'The arena over time'
"$gplan" $model --train --accumulate 2 --report >"$dir/micro"
for report in wide micro; do
    check "a report ($report) has the memory floor" has "$dir/$report" 'no order of these steps'
    check "a report ($report) has the least that a plan costs" has "$dir/$report" 'no plan within the budget takes less'
done
check 'the report has the fragmentation' has "$dir/narrow" 'fragmentation'
check 'a sketch is as wide as the terminal' awk 'length($0) > 100 && /aaa|ppp/ { exit 1 }' "$dir/wide"
check 'a depth is a number' status 2 "$gplan" $model --depth x --emit dot
check 'kinds have names' status 2 "$gplan" $model --emit picture

# ---- The page, used
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
use() { # PAGE: errors are counted from the page's first line on
    {
        sed '/<script>/,$d' "$1"
        echo '<script>const errors = []; addEventListener("error", e => errors.push(e.message));'
        echo 'console.error = (...text) => errors.push(text.join(" "));</script>'
        sed -n '/<script>/,$p' "$1" | sed '/<\/body>/d; /<\/html>/d'
        echo '<script>'
        cat tests/picture/page.js
        echo '</script></body></html>'
    } >"$dir/used.html"
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --window-size=1400,900 \
        --user-data-dir="$dir/profile" --dump-dom "file://$dir/used.html" >"$dir/dom" 2>"$dir/errors"
    sed -n '/<pre id="results">/,/<\/pre>/p' "$dir/dom" | sed 's/<[^>]*>//g' >"$dir/results"
}
if [ -n "$browser" ]; then
    {
        printf 'model many(batch B = 1)\ninput x : f32[B, 8]\nh = x\n'
        echo 'repeat i in 0..5200 { h = relu(dense(h, 8)) + h }'
        echo 'output y = h'
    } >"$dir/many.g"
    "$gplan" "$dir/many.g" -o "$dir/many.html"
    for page in "$dir/plan--train.html" "$dir/many.html"; do
        use "$page"
        check "${page##*/} runs to its end" has "$dir/results" 'errors'
        check "${page##*/} has no errors" has "$dir/results" '^0 errors'
        while read -r line; do
            case $line in
            ok:*) passed=$((passed + 1)) ;;
            'not ok:'*) failed=$((failed + 1)) && echo "failed: ${page##*/}: $line" ;;
            esac
        done <"$dir/results"
    done
else
    echo 'Chromium is not installed: the page is not opened'
fi

finish
