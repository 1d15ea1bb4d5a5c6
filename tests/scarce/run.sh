#!/bin/sh
# gplan where memory or the disk runs out: tests/scarce/run.sh path/to/gplan
# Whichever allocation fails, and whichever call that makes a file, the command says so in one
# message, ends with status 1 and leaves the files of before. scarce.c has how.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
scarce=$(dirname "$gplan")/tests/scarce/scarce
mkdir "$work/place" && cd "$work/place" || exit 1

cat >net.g <<'END'
model net(batch B = 4, C = 6)
input x : f32[B, C]
input t : i32[B]
block layer(x) { return relu(dense(x, C)) + x }
repeat i in 0..2 { x = layer(x) }
logits = dense(x, 3)
output y = softmax(logits)
train cross_entropy(logits, t) using adam(lr = 0.1)
END
{
    printf 'model long(batch B = 2)\ninput x : f32[B, 70]\nconst k : f32[70] = ['
    seq -s, 1 70 | tr -d '\n'
    printf ']\noutput y = x * k\n'
} >long.g
printf 'model bad(B = 2)\ninput x : f32[B, 3]\noutput y = x @ zzz + relu(x, 3, 4)\noutput z = (x y)\n' \
    >bad.g
printf 'id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\nd,2,5,7\ne,4,8,3\n' >pack.csv
printf 'node a size=4 cost=1\nnode b size=4 cost=1\nnode c size=2 cost=3\nedge a b\nedge b c\n' >remat.graph
"$gplan" long.g -o plan.json
profile='"product_flops": 1e9, "conv_flops": 1e9, "loop_flops": 1e9, "bytes": 1e9, "start": 1e-6'
echo "{\"gplan_profile\": 1, $profile}" >profile.json

# ---- Memory ----------------------------------------------------------------------------------------

memory() { check "no memory: gplan $*" "$scarce" memory 40 "$@"; }
for kind in c cu dot svg html json; do
    memory net.g --effort 1 -o out.$kind
done
for kind in graph trace report h; do
    memory net.g --effort 1 --emit $kind
done
memory net.g --effort 1 --report -o out.c
memory net.g --effort 1 --min-budget
memory net.g --infer --effort 1 -d lower,train,simplify,fuse,plan
memory net.g --infer --effort 1 --profile profile.json --quiet
memory net.g --infer --effort 1 --budget 1
memory long.g -o out.c
memory long.g --pareto --effort 1
memory long.g --budget 4K --max B --effort 1
memory bad.g
memory nowhere.g
memory verify plan.json
memory verify pack.csv
memory pack pack.csv -o out.csv --quiet
memory pack pack.csv -o out.svg --quiet
memory pack pack.csv --capacity 3 --quiet
memory remat remat.graph --budget 1K -o out.schedule --quiet
memory remat remat.graph --budget min --quiet
memory --ops

# ---- Files -----------------------------------------------------------------------------------------

files() { check "no file: gplan $*" "$scarce" files 200 "$@"; }
for old in '' yes; do # new files, then others in their place
    files long.g -o out.c
    files net.g --infer --effort 1 -o out.cu
    for kind in h dot svg html json; do
        files long.g -o out.$kind
    done
    files pack pack.csv -o out.csv --quiet
    files pack pack.csv -o out.svg --quiet
    files remat remat.graph --budget 1K -o out.schedule --quiet
    [ -n "$old" ] || {
        for name in out.c out.cu out.h out.dot out.svg out.html out.json out.csv out.schedule; do
            echo old >$name
        done
        "$gplan" long.g --quiet -o other.c && mv other.safetensors out.safetensors && rm other.*
        chmod 640 out.*
    }
done

finish
