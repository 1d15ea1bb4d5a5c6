#!/bin/sh
# The command in the hands of a stranger: tests/cli/run.sh path/to/gplan
# What is wrong gets a message that says so and the right exit status (1: the input, 2: the usage),
# within seconds, and leaves no file behind.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
examples=$root/examples
cd "$work" || exit 1
log=$work/message

# gplan with ARGS... ends with STATUS, says PART, prints nothing else and leaves no new file.
refuses() { # STATUS PART ARGS...
    status=$1
    part=$2
    shift 2
    ls -R . >before
    timeout 300 "$gplan" "$@" >output 2>message
    got=$?
    ls -R . >after
    if [ $got -ne "$status" ]; then
        echo "exit status $got, not $status" >>message
        count "$*" 1
    elif ! grep -qF -- "$part" message || grep -q 'Sanitizer\|runtime error' message; then
        echo "does not say '$part'" >>message
        count "$*" 1
    elif [ -s output ] || ! cmp -s before after; then
        echo "left something behind: $(diff before after)" >>message
        count "$*" 1
    else
        count "$*" 0
    fi
}

cat >good.g <<'END'
model good(batch B = 2, C = 4)
input x : f32[B, C]
output y = softmax(dense(x, 3))
END
: >before
: >after
: >output
: >message

# ---- Wrong usage -----------------------------------------------------------------------------

refuses 2 'which MODEL?'
refuses 1 'a file holds one model' good.g good.g
refuses 2 'C or C++ would refuse' good.g --prefix 'a b' -o out.c
refuses 2 'C or C++ would refuse' good.g --prefix int -o out.c
refuses 2 'unknown option --frobnicate; gplan --help' good.g --frobnicate
refuses 2 'did you mean --budget?' good.g --bugdet 8G
refuses 2 'did you mean --budget?' good.g --bugdet=8G
refuses 2 'unknown option -z' good.g -z
refuses 2 'unknown option --bud' good.g --bud 8G
refuses 2 'unknown option --infer' pack --infer problem.csv
refuses 2 '--output needs a value: --output FILE' good.g -o
refuses 2 '--output needs a value' good.g -o --quiet
refuses 2 '--budget needs a value: --budget SIZE' good.g --budget
refuses 2 '--quiet takes no value' good.g --quiet=yes
refuses 2 'give --emit KIND' good.g -o -
refuses 1 '--quiet: error: cannot open' -- --quiet
refuses 2 'extension' good.g -o out
refuses 2 'the kinds are c cu h report' good.g -o out.xyz
refuses 2 'the kinds are c cu h report' good.g --emit pdf
refuses 2 'the same file' good.g --emit c -o out.h
refuses 2 '--budget' good.g --budget 0
refuses 2 '--budget' good.g --budget -1
refuses 2 '--budget' good.g --budget 1e30
refuses 2 '--budget' good.g --budget nan
refuses 2 '--budget' good.g --budget 8X
refuses 2 '--budget' good.g --budget ''
refuses 2 '--reserve' good.g --budget 1K --reserve 2K
refuses 2 '-D' good.g -D B
refuses 2 '-D' good.g -D =3
refuses 2 '-D' good.g -D B=
refuses 2 '-D' good.g -D B=two
refuses 2 '-D' good.g -D B=2.5
refuses 2 '-D' good.g -D B=99999999999999999999
refuses 2 '--threads' good.g --threads 0
refuses 2 '--threads' good.g --threads -1
refuses 2 '--threads' good.g --threads 99999
refuses 2 'give FILE.cu' good.g --target cuda -o out.c
refuses 2 'give FILE.c' good.g --target c -o out.cu
refuses 2 'the same file' good.g --emit cu -o out.h
refuses 2 '--threads: the target cuda has its own' good.g --threads 2 -o out.cu
refuses 2 '--epilogues always: products of the target cuda have none' good.g --epilogues always -o out.cu
refuses 2 '--epilogues' good.g --epilogues sometimes
refuses 2 '--target' good.g --target opencl
refuses 2 '--effort' good.g --effort none
refuses 2 '--seconds' good.g --seconds 0
refuses 2 '--seconds' good.g --seconds nan
refuses 2 '--io' good.g --io heap
refuses 2 'expected one of: arena external embedded=FILE' good.g --params rom
refuses 2 'expected one of: arena external embedded=FILE' good.g --params embedded
refuses 2 'a file is missing after the =' good.g --params embedded=
refuses 2 'the target cuda has memory of its own' good.g --params embedded=w.safetensors -o out.cu
refuses 1 'w.safetensors: ' good.g --params embedded=w.safetensors -o out.c
refuses 2 '--color' good.g --color pink
refuses 2 'the passes are' good.g -d nothing
refuses 2 'which of them' good.g --infer --train
refuses 2 'gplan params: which MODEL?' params
refuses 2 "--emit 'c': expected one of: csv json" params good.g --emit c
refuses 2 'unknown option --budget' params good.g --budget 1G
refuses 2 'gplan verify: which PLAN.json?' verify
refuses 2 'one PLAN.json at a time, but there is also b' verify a b
refuses 2 'gplan pack: which PROBLEM.csv?' pack
refuses 2 'one PROBLEM.csv at a time, but there is also b' pack a b
refuses 2 "--emit 'png': expected one of: csv svg" pack a --emit png
refuses 2 'gplan remat: which PROBLEM?' remat --budget 1
refuses 2 'within which --budget?' remat a
refuses 2 "--effort '1.5': expected a positive integer" pack a --effort 1.5
refuses 2 "--effort '1e99': expected" pack a --effort 1e99
refuses 2 "--seed '-1': expected an integer" remat a --seed -1

# ---- Wrong input -----------------------------------------------------------------------------

mkdir folder
: >empty.g
head -c 5000 "$gplan" >binary.g
head -c 3000 /dev/urandom >junk.g
printf 'model m(B = 2)\ninput x : f32[B]\noutput y = x\0 + 1\n' >nul.g
head -c 1000000 /dev/zero >nuls.g
(printf '# ' && cat nuls.g) >comment.g
(printf 'x = "' && cat nuls.g) >string.g
awk 'BEGIN { printf "model m(B = 2)\ninput x : f32[B]\noutput y = x";
    for (i = 0; i < 250000; i++) printf " + 1"; print "" }' >line.g
refuses 1 'nowhere.g: ' nowhere.g
refuses 1 'folder: ' folder
refuses 1 'error: ' empty.g
refuses 1 'error: ' binary.g
refuses 1 'error: ' junk.g
refuses 1 'nul.g:3:' nul.g
refuses 1 'nuls.g:1:1: error: the file is not UTF-8 text' nuls.g
refuses 1 'comment.g:1:3: error: the file is not UTF-8 text' comment.g
refuses 1 'string.g:1:5: error: ' string.g
refuses 1 'no parameter of that name' good.g -D X=3
refuses 1 'error: ' good.g -D B=0
refuses 1 'error: ' good.g -D B=-4
refuses 1 'error: ' good.g -D B=9223372036854775807
refuses 1 'error: ' good.g -D B=3037000500 -D C=3037000500
refuses 1 'does not fit' good.g --budget 1
refuses 1 'has no train statement' good.g --train
refuses 1 'add --infer' "$examples/mlp.g" --params embedded=w.safetensors -o out.c
refuses 1 'error: ' verify good.g
refuses 1 'nowhere.g: ' params nowhere.g
refuses 1 'empty.g: error: the file is empty' params empty.g
refuses 1 'nowhere.json: ' verify nowhere.json
if [ "$(id -u)" != 0 ]; then
    cp good.g secret.g && chmod 000 secret.g
    refuses 1 'secret.g: ' secret.g
fi

# A line of a megabyte is read or refused, in seconds.
long_line() {
    timeout 300 "$gplan" line.g --emit report
    [ $? -le 1 ]
}
check 'a line of a megabyte' long_line

# An example that ends anywhere is a model or an error.
cut_short() { # EXAMPLE STEP
    bytes=$(wc -c <"$examples/$1")
    at=0
    while [ "$at" -lt "$bytes" ]; do
        head -c "$at" "$examples/$1" >cut.g
        timeout 300 "$gplan" cut.g --infer -d lower >output 2>message
        status=$?
        [ $status -le 1 ] && { [ $status -eq 0 ] || grep -q 'cut.g.*error: ' message; } ||
            { echo "cut after $at bytes: exit status $status" && cat message && return 1; }
        at=$((at + $2))
    done
}
check 'mlp.g cut short after every byte' cut_short mlp.g 1
check 'gpt2.g cut short' cut_short gpt2.g 23

# ---- Places that cannot be written -------------------------------------------------------------

refuses 1 'no/such/out.c: cannot be written' good.g -o no/such/out.c
refuses 1 'good.g/out.c: cannot be written' good.g -o good.g/out.c
mkdir out.c out.h.folder
refuses 1 'out.c: cannot be written' good.g -o out.c
mkdir taken && mkdir taken/m.h
refuses 1 'taken/m.h: cannot be written' good.g -o taken/m.c
if [ "$(id -u)" != 0 ]; then
    mkdir closed && chmod 555 closed
    refuses 1 'closed/out.c: cannot be written' good.g -o closed/out.c
fi
to_full() { # ARGS...
    "$gplan" "$@" >/dev/full
    [ $? -eq 1 ]
}
to_closed() { # ARGS...
    "$gplan" "$@" >&-
    [ $? -eq 1 ]
}
"$gplan" good.g -o plan.json
printf 'id,lower,upper,size\na,0,2,4\n' >problem.csv
printf '2 1\n4 1\n4 1\n0 1\n' >problem.graph
for arguments in 'good.g --emit c' 'good.g --emit html' 'good.g' 'good.g -d lower' \
    'good.g -d plan' 'good.g --min-budget' 'good.g --max B --budget 1M' 'good.g --pareto' \
    '--help' '--version' 'verify plan.json' 'params good.g' 'params good.g --emit json' 'pack problem.csv' 'pack problem.csv --emit csv' \
    'pack --help' 'remat problem.graph --budget 100%' 'remat --help'; do
    # shellcheck disable=SC2086
    check "a full standard output: $arguments" to_full $arguments
    # shellcheck disable=SC2086
    check "a closed standard output: $arguments" to_closed $arguments
done
ln -s /dev/full full.c
full_device() { ! "$gplan" good.g -o full.c && [ ! -e full.h ] && grep -q 'full.c: cannot be' message; }
check 'a full device' full_device

# Every writer: a disk without room, a device without room, and what is replaced.
printf 'id,lower,upper,size\na,0,3,4\nb,3,9,4\n' >pack.csv
printf 'node a size=4 cost=1\nnode b size=4 cost=1\nedge a b\n' >remat.graph
cat >write.sh <<'END'
case $1 in
*.csv) exec "$gplan" pack pack.csv --quiet -o "$1" ;;
*.schedule) exec "$gplan" remat remat.graph --budget 100% --quiet -o "$1" ;;
*) exec "$gplan" good.g --quiet -o "$1" ;;
esac
END
write() { # FILE: by the command that its extension asks for
    gplan=$gplan sh ./write.sh "$1"
}
no_room() { # KIND: the files of before stay, and no other is left
    rm -rf small && mkdir small && echo old >"small/out.$1" && chmod 640 "small/out.$1" &&
        (trap '' XFSZ && ulimit -f 0 && write "small/out.$1" 2>&1; echo "status $?") | cat >said &&
        grep -q 'status 1' said && grep -q 'File too large' said &&
        [ "$(cat "small/out.$1")" = old ] && [ "$(ls small)" = "out.$1" ] && ln -sf /dev/full "full.$1" &&
        ! write "full.$1" && grep -q 'No space left' message && [ "$(ls full.*)" = "full.$1" ] &&
        rm "full.$1"
}
replaces() { # KIND: the mode stays, a symlink stays one, a planted name is not followed
    rm -rf old && mkdir old old/real && (umask 026 && write "old/new.$1") &&
        [ "$(stat -c %a "old/new.$1")" = 640 ] && echo old >"old/real/out.$1" &&
        chmod 604 "old/real/out.$1" && ln -s "real/out.$1" "old/out.$1" && echo kept >old/victim &&
        (gplan=$gplan sh -c 'for name in "$1.$$" "$1.$$.0" "$1.$$.1" "$2.$$.0"; do ln -s ../victim "$name.tmp"; done
            . ./write.sh' sh "old/out.$1" "old/real/out.$1") &&
        [ "$(cat old/victim)" = kept ] && [ -L "old/out.$1" ] && [ ! -L "old/real/out.$1" ] &&
        [ "$(stat -c %a "old/real/out.$1")" = 604 ] && ! grep -q '^old$' "old/real/out.$1" &&
        [ "$(ls old/*.tmp old/real/*.tmp | wc -l)" -eq 4 ]
}
rm -f full.c
for kind in c cu h dot svg html json csv schedule; do
    check "no room for $kind" no_room $kind
    check "$kind is replaced" replaces $kind
done

# ---- What is right ---------------------------------------------------------------------------

# A second file is appended to the model, and messages name the file that a line is of.
appended() {
    printf 'model m(batch B = 4)\ninput x : f32[B, 8]\nh = dense(x, 4)\noutput h' >first.g
    printf '# more\ninput y : f32[B, 4]\ntrain mse(h, y) using sgd(lr = 0.1)\n' >second.g
    cat first.g >asone.g && echo >>asone.g && cat second.g >>asone.g
    "$gplan" first.g second.g -o first.c && "$gplan" asone.g -o asone.c &&
        sed 's/asone.g:7/second.g:3/g; s/asone/first/g' asone.c | cmp - first.c
}
check 'a second file is appended' appended
named() {
    printf '# more\ninput y : f32[B, 3]\ntrain mse(h, y) using sgd(lr = 0.1)\n' >second.g
    ! "$gplan" first.g second.g -o named.c 2>named.err && [ ! -e named.c ] &&
        grep -q '^second.g:3:' named.err && ! "$gplan" second.g first.g 2>named.err &&
        grep -q '^second.g:2:1: error: the file must begin' named.err &&
        grep -q '^first.g:1:1: note' named.err
}
check 'a message names the file of its line' named
lines() { # in every kind that has them: the line of the file, not of all that was read
    printf '# more\ninput y : f32[B, 4]\ntrain mse(h, y) using sgd(lr = 0.1)\n' >second.g
    "$gplan" first.g second.g -o two.json && tr -d ' \n' <two.json >flat &&
        grep -q '"file":"second.g","line":2,' flat && grep -q '"file":"second.g","line":3,' flat &&
        ! grep -q '"line":[5-9]' flat && ! grep -q '"file":"first.g","line"' flat &&
        "$gplan" verify two.json && "$gplan" first.g second.g --emit trace | tr -d ' \n' |
        grep -q '"source":"second.g:3"' && "$gplan" first.g second.g -o two.html &&
        grep -qF 'parts: [{line: 1, file: "first.g"},{line: 5, file: "second.g"},]' two.html
}
check 'lines are those of their file in plans and pictures' lines

# What a comment cannot hold is changed in it, and nothing else.
comment() {
    cp good.g 'a?b??c.g' && "$gplan" 'a?b??c.g' -o comment.c && grep -qF 'from a?b_?c.g.' comment.c
}
check 'a comment keeps what it can of a name' comment

verbose() {
    "$gplan" good.g -v --budget 1M -o verbose.c >verbose.out 2>verbose.err && [ ! -s verbose.out ] &&
        for pass in read lowered fused planned chosen checked; do
            grep -q "$pass" verbose.err || return 1
        done
    "$gplan" good.g --budget 1M -o quiet.c 2>quiet.err && [ ! -s quiet.err ] &&
        sed s/verbose/quiet/ verbose.c | cmp - quiet.c
}
check '-v names what is done, and changes nothing' verbose
standard_input() { "$gplan" - -o stdin.c <good.g && [ -s stdin.c ] && [ -s stdin.h ]; }
check 'a model from standard input' standard_input
to_stdout() {
    "$gplan" good.g --emit c >piped.c && "$gplan" good.g -o good.c && cmp piped.c good.c
}
check 'C on standard output' to_stdout
same_as() { # ARGS...: they ask for what good.c was written with
    rm -f spelled.c && "$gplan" "$@" && sed s/spelled/good/ spelled.c | cmp - good.c
}
spellings() {
    "$gplan" good.g -o good.c -D B=3 --budget 1M && same_as good.g -ospelled.c -DB=3 --budget=1M &&
        same_as --output=spelled.c --define=B=3 -b1M good.g && same_as -o=spelled.c -D=B=3 -b 1M -- good.g &&
        same_as -qo spelled.c --define B=3 --budget 1024K good.g &&
        "$gplan" -D B=3 --budget 1M --emit c -o - good.g | cmp - good.c &&
        "$gplan" -D B=3 --budget 1M --emit c - <good.g | sed 's/<stdin>/good.g/g' | cmp - good.c
}
check 'options in all their spellings' spellings
sorted() { # a file after an option of every command, and dashes that are none
    cp good.g ./-good.g && "$gplan" -o sorted.c -- -good.g && [ -s sorted.c ] &&
        printf 'id,lower,upper,size\na,0,2,4\n' | "$gplan" pack - --effort 1e3 --seed 0 -o - >packed 2>report &&
        [ "$(tail -n 1 packed)" = a,0,2,4,0 ] && grep -q height report &&
        printf '2 1\n4 1\n4 1\n0 1\n' | "$gplan" remat - -b 100% -qo - >order && [ "$(tr '\n' ' ' <order)" = '0 1 ' ]
}
check 'standard streams and files that begin with a dash' sorted
smallest() {
    least=$(least_budget good.g) && "$gplan" good.g --budget "$least" -o least.c &&
        ! "$gplan" good.g --accumulate 1 --budget $((least - 1)) -o less.c 2>message && [ ! -e less.c ]
}
check 'the smallest budget is the smallest' smallest
quiet() { [ -z "$("$gplan" good.g --quiet -o quiet.c 2>&1)" ]; }
check 'quiet' quiet
helps() {
    for word in --help --version --ops --man --completion -h; do
        [ -n "$("$gplan" $word)" ] || return 1
    done
    for word in run params weights pack remat verify; do
        "$gplan" $word --help | grep -q "^usage: gplan $word " || return 1
    done
}
check 'help' helps
names() { # what C takes for its own, as names of everything
    cat >names.g <<'END'
model int(batch while = 2, for = 3)
input double : f32[while, for]
input class : f32[while, for]
param static : f32[for] = ones
output return = double + class * static
END
    "$gplan" names.g -o names.c && gcc -Wall -Wextra -Werror -c names.c -o names.o &&
        grep -q 'C would refuse the name int' names.h
}
check 'keywords of C as names' names
ours() { # and those of the runtime
    sed 's/^model int/model gp_run/' names.g >ours.g && "$gplan" ours.g -o ours.c &&
        gcc -Wall -Wextra -Werror -c ours.c -o ours.o
}
check 'names of the runtime as names' ours
params() { # each parameter once, what it is and why; -D counts
    cat >listed.g <<'END'
model listed(batch B = 2, N = 3)
input x : f32[B, 4, N]
const ids : i32[2] = [1, 0]
param table : u8[5, N]
frozen param shift : [N] = zeros
h = batchnorm(x + shift)
w, b = split(embedding(ids, count = 9, size = 2*N, name = "e"), 2)
h = dense(h, 6, name = "a") + dense(h, 6, bias = false, name = "b")
output y = sum(h) + sum(w) + sum(b) + sum(cast(table, f32))
train mean(h) using sgd(lr = 0.1) { group "b.*" { frozen = true } }
END
    "$gplan" params listed.g -D N=5 --emit csv >listed.csv && cmp - listed.csv <<'END' &&
name,dtype,shape,bytes,kind,why
ids,i32,[2],8,const,
table,u8,"[5, 5]",25,frozen,u8 has no gradient
shift,f32,[5],20,frozen,declared so
batchnorm.0.scale,f32,[4],16,trainable,scale of batchnorm
batchnorm.0.bias,f32,[4],16,trainable,bias of batchnorm
batchnorm.0.mean,f32,[4],16,running state,mean of batchnorm
batchnorm.0.var,f32,[4],16,running state,var of batchnorm
e.table,f32,"[9, 10]",360,trainable,table of embedding
a.w,f32,"[5, 6]",120,trainable,w of dense
a.b,f32,[6],24,trainable,b of dense
b.w,f32,"[5, 6]",120,frozen,"frozen = true for ""b.*"" in the train statement"
END
        "$gplan" params listed.g >listed.txt && grep -qxF 'running state  2 tensors, 8 numbers, 32 bytes' listed.txt &&
        "$gplan" params listed.g --emit json | tr -d ' \n' | grep -qF '"runningstate":{"tensors":2,"numbers":8,"bytes":32}'
}
check 'parameters are listed with what they are' params
reserve() {
    least=$(least_budget good.g --reserve 1000) &&
        "$gplan" good.g --budget "$least" --reserve 1000 -o reserve.c
}
check 'a reserve counts' reserve
for kind in c h report dot svg html json trace graph; do
    same() { "$gplan" good.g --emit $kind >a && "$gplan" good.g --emit $kind >b && cmp a b && [ -s a ]; }
    check "$kind twice" same
done

# ---- Profiles of machines -----------------------------------------------------------------------

profile='"product_flops": 1e9, "conv_flops": 1e9, "loop_flops": 1e9, "bytes": 1e9, "start": 1e-6'
echo "{\"gplan_profile\": 1, $profile}" >slow.json
echo "{\"gplan_profile\": 1, $(echo "$profile" | sed 's/1e9/1e10/g; s/1e-6/1e-7/')}" >fast.json
measured() {
    "$gplan" --calibrate -o here.json && "$gplan" good.g --profile here.json --quiet &&
        "$gplan" --calibrate >there.json && "$gplan" good.g --profile there.json --quiet
}
check 'what --calibrate writes, --profile reads' measured
seconds() { "$gplan" good.g --profile "$1" --pareto --emit csv | sed -n 2p | cut -d, -f3; }
estimates() {
    awk -v slow="$(seconds slow.json)" -v fast="$(seconds fast.json)" \
        'BEGIN { exit !(fast > 0 && slow > 9.99 * fast && slow < 10.01 * fast) }'
}
check 'estimates follow the profile' estimates
echo 'flops: many' >text.json
echo '{"product_flops": 1e9}' >bare.json
echo '[1, 2]' >list.json
echo "{\"gplan_profile\": 2, $profile}" >later.json
echo '{"gplan_profile": 1, "product_flops": 1e9}' >part.json
echo "{\"gplan_profile\": 1, $(echo "$profile" | sed 's/"bytes": 1e9/"bytes": 0/')}" >zero.json
echo "{\"gplan_profile\": 1, $(echo "$profile" | sed 's/"bytes": 1e9/"bytes": "9"/')}" >word.json
echo "{\"gplan_profile\": 1, \"cache\": 3, $profile}" >more.json
refuses 1 'text.json: error: this is no JSON' good.g --profile text.json
refuses 1 'it has no number gplan_profile' good.g --profile bare.json
refuses 1 'it has no number gplan_profile' good.g --profile list.json
refuses 1 'gplan_profile is 2, but this gplan knows 1' good.g --profile later.json
refuses 1 'conv_flops is missing' good.g --profile part.json
refuses 1 'bytes must be above 0' good.g --profile zero.json
refuses 1 'bytes is missing, or no number' good.g --profile word.json
refuses 1 'cache means nothing in a profile' good.g --profile more.json
refuses 1 'nowhere.json' good.g --profile nowhere.json
refuses 2 '--calibrate takes no model' --calibrate good.g
refuses 2 'a profile is JSON' --calibrate -o here.cu
echo "{\"gplan_profile\": 1, \"link_core\": 2, $profile}" >core.json
echo "{\"gplan_profile\": 1, \"link_bytes\": -2, $profile}" >link.json
refuses 1 'link_core is a share, at most 1, not 2' good.g --profile core.json
refuses 1 'link_bytes must be above 0' good.g --profile link.json

finish
