#!/bin/sh
# The program that --main writes around a model: trains, evaluates, predicts; is killed, stopped, and
# short of disk, and goes on from there: run.sh path/to/gplan
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$work" || exit 1
mkdir data
cc=${CC:-gcc}
strict='-std=c11 -O1 -Wall -Wextra -Wpedantic -Werror'

# shellcheck disable=SC2086
build() {
    "$gplan" "$here/tiny.g" --threads 2 --main -o tiny.c &&
        "$cc" -O1 "$here/samples.c" -o samples && ./samples data/train-x data/train-y 400 1 &&
        ./samples data/eval-x data/eval-y 103 2 &&
        "$cc" -shared -fPIC "$here/die.c" -o die.so -ldl &&
        "$cc" $strict -fopenmp -pthread tiny.c tiny_main.c -lm -o tiny
}
check 'what is written compiles without a warning' build || { finish; exit 1; }
if command -v clang >/dev/null; then
    # shellcheck disable=SC2086
    check 'by clang too' clang $strict -Wno-unknown-pragmas -c tiny_main.c -o clang.o
fi

# ---- Arguments -------------------------------------------------------------------------------

says() { # STATUS PART ARGS...
    status=$1
    part=$2
    shift 2
    timeout 60 ./tiny "$@" >output 2>&1
    got=$?
    cat output
    [ $got -eq "$status" ] && grep -qF -- "$part" output && [ ! -e tiny.safetensors ]
}
check 'help' says 0 'usage: tiny train [options]' --help
check 'help of a command' says 0 '--patience N' train --help
check 'nothing to do' says 2 'what is there to do?'
check 'another command' says 2 'tain: what is there to do?' tain
check 'an unknown option' says 2 'unknown option --epoch;' train --epoch 3
check 'an option of another command' says 2 'unknown option --epochs;' eval --epochs 3
check 'no value' says 2 '--epochs needs a value: --epochs N' train --epochs
check 'a word for a number' says 2 "--epochs 'ten': expected N" train --epochs ten
check 'no number of steps' says 2 "--steps '0': expected N" train --steps=0
check 'a value too much' says 2 "--resume 'yes': expected no value" train --resume=yes
check 'a schedule that is none' says 2 "--schedule 'bumpy'" train --schedule bumpy
check 'something else' says 2 'what is this?' train this
check 'no data' says 1 'none' train --data none
check 'no file to run' says 1 'tiny.safetensors' eval
check 'a file that is none' says 1 'data/eval-x' eval --load data/eval-x
check 'a folder that is not there' says 1 'none/m.safetensors' train --steps 1 --save none/m.safetensors
check 'a log that cannot be' says 1 'none/log.csv' train --steps 1 --log none/log.csv

# ---- Training, evaluation, prediction --------------------------------------------------------

learns() {
    ./tiny train --epochs 8 --save m.safetensors --log log.csv --report 50 >lines && cat lines &&
        ./tiny eval --load m.safetensors >evaluated && cat evaluated &&
        grep -Eqx 'loss 0\.[0-9]{4}  accuracy (0\.9[0-9]{3}|1\.0000)' evaluated
}
check 'it learns' learns
plain() { [ "$(wc -l <lines)" -eq 17 ] && ! grep -q "$(printf '[\r\033]')" lines; }
check 'lines in a pipe are plain, one for each report and evaluation' plain
# The largest output is the class: counted here, it is the accuracy that eval prints.
predicts() {
    ./tiny predict --load m.safetensors data-eval >predicted && head -n 3 predicted &&
        [ "$(wc -l <predicted)" -eq 103 ] &&
        right=$(awk '{ sub(":", "", $3); right += $3 == (NR - 1) % 4 } END { printf "%.4f", right / NR }' predicted) &&
        echo "$right" && grep -q "accuracy $right" evaluated
}
mkdir data-eval && cp data/eval-x data/eval-y data-eval
check 'predictions agree with the evaluation' predicts
elsewhere() { ./tiny eval --load m.safetensors --data data-eval | cmp - evaluated; }
check 'data elsewhere' elsewhere
columns() {
    head -n 1 log.csv && [ "$(head -n 1 log.csv)" = step,part,epoch,loss,accuracy,lr,samples_per_second,seconds ] &&
        awk -F, 'NR > 1 && NF != 8 { exit 1 } $2 == "eval" { evals++ } $2 == "train" { trains++ }
            END { exit evals != 8 || trains != 8 }' log.csv
}
check 'the log has a row for each report and evaluation' columns
json() {
    ./tiny train --steps 100 --save j.safetensors --log log.jsonl >/dev/null && cat log.jsonl &&
        [ "$(grep -Ecx '\{"step": (50|100), "part": "(train|eval)", "epoch": [0-9.]+, "loss": [0-9.]+, "accuracy": [0-9.]+, "lr": 0.002, "samples_per_second": [0-9.e+]+, "seconds": [0-9.e-]+\}' log.jsonl)" -eq 3 ]
}
check 'or lines of JSON' json
kept() {
    mkdir keep && ./tiny train --steps 100 --every 20 --keep 2 --save keep/m.safetensors >/dev/null && ls keep &&
        [ "$(ls keep)" = "$(printf 'm.100.safetensors\nm.80.safetensors\nm.safetensors')" ] &&
        cmp keep/m.safetensors keep/m.100.safetensors &&
        ./tiny train --steps 100 --load keep/m.80.safetensors --save keep/again.safetensors >/dev/null &&
        cmp keep/m.safetensors keep/again.safetensors
}
check 'the last checkpoints are kept, and a run goes on from any of them' kept
patient() {
    ./tiny train --epochs 9 --lr 1e-30 --patience 2 --best best.safetensors --save p.safetensors >lines && cat lines &&
        grep -q 'done after step 150 of 450' lines && [ -s best.safetensors ] &&
        ./tiny train --epochs 9 --lr 1e-30 --patience 2 --resume --save p.safetensors >again && cat again &&
        grep -q 'done after step 150 of 450' again
}
check 'it stops where nothing gets better, and stays there' patient
falls() {
    ./tiny train --steps 40 --report 10 --schedule linear --warmup 20 --floor 0.5 --log lr.csv --save s.safetensors >/dev/null &&
        cut -d, -f 1,2,6 lr.csv && awk -F, '$2 == "train" && $1 == 10 { up = $6 } $2 == "train" && $1 == 20 { top = $6 }
            $2 == "train" && $1 == 40 { end = $6 } END { exit !(up < top && end < 0.0011 && end > 0.0009) }' lr.csv
}
check 'the learning rate rises and falls' falls

# ---- Killed, stopped, short of disk ----------------------------------------------------------

long='train --epochs 6 --every 3 --eval 70 --report 40'
# shellcheck disable=SC2086
./tiny $long --save whole.safetensors --log whole.csv >/dev/null

none() { # a pattern that no file has
    [ ! -e "$1" ]
}
same_end() { # NAME: after what was done to it
    # shellcheck disable=SC2086
    ./tiny $long --save "$1.safetensors" --log "$1.csv" --resume >/dev/null &&
        cmp whole.safetensors "$1.safetensors" && none "$1"*.tmp &&
        cut -d, -f 1,2 whole.csv >"$1.rows" && cut -d, -f 1,2 "$1.csv" | cmp - "$1.rows"
}
killed_in() { # WHERE NUMBER
    # shellcheck disable=SC2086
    DIE_IN=$1 DIE_AT=$2 LD_PRELOAD="$work/die.so" ./tiny $long --save "d$1$2.safetensors" --log "d$1$2.csv" >/dev/null
    [ $? -eq 137 ] && ls "d$1$2"* && same_end "d$1$2"
}
for number in 1 7 30; do
    for where in fsync rename renamed; do
        check "killed in a save, at $where $number, and resumed: the same file" killed_in $where $number
    done
done
# At moments that nobody chose, until it is done; where it was done before the first of them, sooner.
killed() {
    kills=0
    most=0.3
    while [ $kills -lt 40 ]; do
        delay=$(awk -v seed="$1$kills$$" -v most=$most 'BEGIN { srand(seed); printf "%.4f", most * (0.05 + rand()) }')
        # shellcheck disable=SC2086
        timeout -s KILL "$delay" ./tiny $long --save "k$1.safetensors" --log "k$1.csv" --resume >/dev/null || {
            kills=$((kills + 1))
            continue
        }
        [ $kills -eq 0 ] && [ "$most" != 0.0002 ] || break
        rm -f "k$1".*
        case $most in 0.3) most=0.05 ;; 0.05) most=0.01 ;; *) most=0.0002 ;; esac
    done
    echo "$kills kills" && [ $kills -gt 0 ] && same_end "k$1"
}
check 'killed at random moments and resumed: the same file' killed 1
stopped() { # SIGNAL STATUS
    # shellcheck disable=SC2086
    ./tiny $long --save "s$1.safetensors" --log "s$1.csv" --resume >"s$1.lines" 2>&1 &
    ran=$!
    while [ ! -e "s$1.safetensors" ]; do sleep 0.02; done
    kill "-$1" $ran
    wait $ran
    [ $? -eq "$2" ] && cat "s$1.lines" && grep -q 'stopped after step' "s$1.lines" && same_end "s$1"
}
check 'ctrl-C ends the step, saves, and the run goes on' stopped INT 130
check 'SIGTERM likewise' stopped TERM 143

# Files may have so many blocks: the first save fits, a log that grows does not; or none fits.
full() {
    ./tiny train --steps 3 --save f.safetensors >/dev/null && cp f.safetensors before.safetensors &&
        (ulimit -f 4 && ./tiny train --steps 6 --save f.safetensors --resume >output 2>&1)
    [ $? -eq 1 ] && cat output && grep -q 'f.safetensors: cannot be written: File too large' output &&
        cmp f.safetensors before.safetensors && none f*.tmp
}
check 'a disk that is full leaves the last whole file' full
full_log() {
    ln -s /dev/full full.csv && ! ./tiny train --steps 30 --report 1 --log full.csv --save g.safetensors >output 2>&1 &&
        cat output && grep -q 'full.csv: cannot be written' output
}
check 'a log on a full disk' full_log
cut_short() {
    cp -r data cut && ./tiny train --data cut --epochs 2 --save c.safetensors >/dev/null &&
        cp c.safetensors before.safetensors && head -c 3000 data/train-x >cut/train-x &&
        ! ./tiny train --data cut --epochs 4 --save c.safetensors --resume >output 2>&1 && cat output &&
        grep -q 'train-x' output && cmp c.safetensors before.safetensors
}
check 'data that was cut short is named, and the last file is whole' cut_short
closed() {
    ./tiny train --epochs 6 --report 1 --save q.safetensors | head -n 2 >/dev/null
    ./tiny train --epochs 6 --resume --save q.safetensors >/dev/null && ./tiny train --epochs 6 --save q2.safetensors >/dev/null &&
        cmp q.safetensors q2.safetensors
}
check 'a reader that goes away stops it in order' closed

# ---- gplan -----------------------------------------------------------------------------------

runs() {
    CFLAGS=-O1 "$gplan" run "$here/tiny.g" --budget 2M --threads 2 -- train --epochs 8 --save r.safetensors >output 2>&1
    status=$?
    cat output
    [ $status -eq 0 ] && cmp m.safetensors r.safetensors
}
check 'in one command: the same file' runs
cat >plain.g <<'END'
model plain(batch B = 2)
input x : f32[B, 3]
output y = dense(x, 3)
train mse(y, x) using sgd(lr = 0.1)
END
refuses() { # STATUS PART ARGS...
    status=$1
    part=$2
    shift 2
    "$gplan" "$@" >output 2>&1
    [ $? -eq "$status" ] && cat output && grep -qF -- "$part" output && [ ! -e no.c ]
}
check '--main without data' refuses 1 'no data statement' plain.g --main -o no.c
check '--main without training' refuses 1 'there is no training step' "$here/tiny.g" --infer --main -o no.c
check '--main of another kind' refuses 2 '--main' "$here/tiny.g" --main -o no.json
check 'run without data' refuses 1 'no data statement' run plain.g
finish
