#!/bin/sh
# Emitted programs that read data: from every format the same samples, whatever the ring, the
# workers and the micro-batches; a run that is loaded goes on where it was; damage is an error that
# names the file. usage: run.sh GPLAN
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless

cc=${CC:-gcc}
flags="-std=c11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -Wall -Wextra -Wpedantic -Werror"
mkdir "$work/data"
$cc -O1 "$here/files.c" -o "$work/files" && "$work/files" "$work/data" || exit 1

# model STATEMENT: images.g with it.
model() { sed "s|^FORMAT|$1|" "$here/images.g" >"$work/net.g"; }

# build NAME OPTIONS...: plans, emits and compiles net.g as the program NAME.
build() {
    name=$1
    shift
    "$gplan" "$work/net.g" "$@" --emit json >"$work/net.json" &&
        "$gplan" "$work/net.g" "$@" -o "$work/net.c" && compile "$work/$name"
}

compile() { # PROGRAM
    # shellcheck disable=SC2086 # flags are words
    $cc $flags -DGPLAN_POISON -I"$work" "$work/net.c" "$here/train.c" -o "$1" $more -lm -pthread
}
more='' # flags and libraries of some

# run NAME STEPS [LOAD] [SAVE]: in the folder of the data.
run() {
    name=$1
    shift
    (cd "$work/data" && "$work/$name" "$@" 2>&1)
}

idx='data train = idx("x-idx3", "y-idx1", flip = true, split = 0.2) -> x, y'
npy='data train = npy("x.npy", "y.npy", flip = true, split = 0.2) -> x, y'
records='data train = records("xy.bin", flip = true, split = 0.2) -> y, x'

model "$idx"
build idx && run idx 40 >"$work/idx.out"
check 'idx trains' sh -c "grep -q 'eval 41' '$work/idx.out' && tail -n 1 '$work/idx.out' | grep -q ' 1$\| 0.9'"

model "$npy"
build npy && run npy 40 >"$work/npy.out"
check 'npy gives what idx gives' sh -c "cmp '$work/idx.out' '$work/npy.out'"
model "$records"
build records && run records 40 >"$work/records.out"
check 'records give what idx gives' sh -c "cmp '$work/idx.out' '$work/records.out'"

# The other formats have no flip.
model 'data train = records("xy.bin", split = 0.2) -> y, x'
build plain && run plain 40 >"$work/plain.out"
model 'data train = safetensors("xy.safetensors", keys = ["pixels", "classes"], split = 0.2) -> x, y'
build tensors && run tensors 40 >"$work/tensors.out"
check 'safetensors give what records give' cmp "$work/plain.out" "$work/tensors.out"
model 'data train = csv("xy.csv", columns = ["p0", "class"], split = 0.2) -> x, y'
sed -i 's/^input x .*/input x : u8[B, 64]/; s|x / 255.0|reshape(x, [B, 1, 8, 8]) / 255.0|' "$work/net.g"
build table && run table 40 >"$work/table.out"
check 'csv gives what records give' cmp "$work/plain.out" "$work/table.out"
model 'data train = callback(split = 0.2) -> x, y'
more=-DCALLBACK
build callback && run callback 40 >"$work/callback.out"
check 'a callback gives what records give' cmp "$work/plain.out" "$work/callback.out"
cp "$work/data/xy.bin" "$work/whole"
head -c 6500 "$work/whole" >"$work/data/xy.bin"
run callback 40 >"$work/callback.out"
check 'a callback says why it failed' \
    grep -q '^error 12: data train: sample [0-9]*: xy.bin is too short' "$work/callback.out"
cp "$work/whole" "$work/data/xy.bin"
more=''

model "$idx"
least=$(least_budget "$work/net.g" --accumulate 1)
build small --accumulate 1 --budget "$least" && run small 40 >"$work/small.out"
check 'without workers it gives the same bits' \
    sh -c "grep -q 'depth = 1,' '$work/net.c' && cmp '$work/idx.out' '$work/small.out'"

build micro --accumulate 4 && run micro 40 >"$work/micro.out"
check 'a slot holds a micro-batch' sh -c "grep -q 'slot = 4,' '$work/net.c'"
check 'micro-batches learn the same' sh -c "tail -n 1 '$work/micro.out' | grep -q ' 1$\| 0.9'"

check 'verify takes its plan' "$gplan" verify "$work/net.json"
# refused NAME SED-SCRIPT MESSAGE: a plan with a fault in its ring.
refused() {
    sed "$2" "$work/net.json" >"$work/fault.json"
    "$gplan" verify "$work/fault.json" >"$log" 2>&1
    [ $? -eq 1 ] && grep -q "$3" "$log"
    count "verify refuses $1" $?
}
refused 'a ring of fewer slots than it says' 's/"data": {"depth":2/"data": {"depth":3/' 'slots of'
refused 'workers without a slot to fill' 's/"data": {"depth":2/"data": {"depth":1/' 'cannot fill one ahead'
refused 'more workers than have memory' 's/"workers":1/"workers":9/' 'needs'
refused 'an input outside its place' 's/"layout":{"offset":256,/"layout":{"offset":0,/' 'place in a slot'
refused 'a ring that nothing fills' 's/^"data": .*$/"nothing": 0,/' '.'

# The 41 samples that are held out do not fill their last batch: their mean is that of one by one.
model "$idx"
run idx 20 '' "$work/model" >"$work/log"
build single -D B=1 && run single 0 "$work/model" >"$work/single.out"
mean() { # PROGRAM
    run "$1" 0 "$work/model" >"$work/mean.out"
    cat "$work/single.out" "$work/mean.out" >"$log"
    awk '{ loss[NR] = $3; right[NR] = $4; n += $2 } END {
        d = loss[1] - loss[2]; e = right[1] - right[2]
        exit !(NR == 2 && n == 82 && d * d < 1e-12 * loss[1] ^ 2 && e * e < 1e-12)
    }' "$log"
    count "$1: what fills up a batch is not in loss and accuracy" $?
}
mean idx
mean micro

model "$idx"
sed -i 's/cross_entropy(logits, label)/cross_entropy(logits, label, reduction = sum)/' "$work/net.g"
build sum && run sum 20 >"$work/sum.out"
check 'a sum leaves out what does not fill a batch' grep -q 'eval 32 ' "$work/sum.out"

run idx 23 '' "$work/half" >"$work/resumed.out" && run idx 40 "$work/half" >>"$work/resumed.out"
check 'a loaded run goes on' sh -c "cmp '$work/idx.out' '$work/resumed.out'"

# chooses BUDGET WORKERS WHY: what the report says that the budget gets.
chooses() {
    # shellcheck disable=SC2086 # the first is none or two words
    "$gplan" "$here/photos.g" --threads 8 $1 --report >"$log" 2>&1 && grep -q "data read ahead by  *$2 .*$3" "$log"
    count "photos with ${1:-no budget} are read ahead by $2" $?
}
chooses '' '8 threads' 'slots'
chooses '--budget 40M' '4 threads' 'more threads would not fit'
chooses '--budget 20M' '2 threads' 'more threads would not fit'
chooses '--budget 12M' '1 thread' 'more threads would not fit'
chooses "--budget $(least_budget "$here/photos.g" --threads 8)" none 'more threads would not fit'

cp "$here/tokens.g" "$work/net.g"
build tokens && run tokens 40 >"$work/tokens.out"
check 'tokens train' sh -c "grep -q 'eval 333' '$work/tokens.out'"

. "$here/photos.sh"

model "$idx"
build idx || exit 1
cp "$work/data/x-idx3" "$work/whole"
head -c 5000 "$work/whole" >"$work/data/x-idx3"
run idx 1 >"$work/cut.out"
check 'a file that is cut is named' sh -c "grep -q '^error 12: .*x-idx3' '$work/cut.out'"
rm "$work/data/x-idx3"
run idx 1 >"$work/none.out"
check 'a file that is missing is named' sh -c "grep -q '^error 12: .*x-idx3' '$work/none.out'"
cp "$work/whole" "$work/data/x-idx3"
printf '\011' | dd of="$work/data/y-idx1" bs=1 seek=100 conv=notrunc 2>/dev/null
run idx 40 >"$work/label.out"
check 'a label outside the classes is named' sh -c "grep -q '^error 12: .*y-idx1.* 9' '$work/label.out'"

finish
