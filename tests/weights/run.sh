#!/bin/sh
# Weights of other tools: tests/weights/run.sh path/to/gplan
# Files are made by make.c from a line a tensor; what comes out is read back by show.c, which shares
# nothing with gplan.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cc=${CC:-gcc}
examples=$root/examples
cd "$work" || exit 1
log=$work/message
"$cc" -std=c11 -O1 "$here/make.c" -lm -o make && "$cc" -std=c11 -O1 "$here/show.c" -o show || exit 1

# gplan weights with ARGS... ends with STATUS, says PART and leaves no new file.
refuses() { # STATUS PART ARGS...
    status=$1
    part=$2
    shift 2
    ls -R . >before
    timeout 300 "$gplan" weights "$@" >output 2>message
    got=$?
    ls -R . >after
    [ $got -eq "$status" ] && grep -qF -- "$part" message output &&
        ! grep -q 'Sanitizer\|runtime error' message && cmp -s before after
    result=$?
    echo "exit status $got; expected $status and '$part'" >>message
    count "$*" $result
}
: >before
: >after
: >output
: >message

# MODEL.g and the lines of IN give the lines of OUT.
gives() { # NAME ARGS...: NAME.g, NAME.in and NAME.out are there
    name=$1
    shift
    ./make "$name.safetensors" <"$name.in" && "$gplan" weights "$name.safetensors" "$name.g" "$@" \
        -o out.safetensors && ./show out.safetensors >"$name.got" && diff -u "$name.out" "$name.got"
}

# ---- By name, by order -----------------------------------------------------------------------

cat >named.g <<'END'
model named(batch B = 2)
input x : f32[B, 2]
fc1 = dense(x, 3)
output y = dense(fc1, 1, bias = false, name = "fc2")
END
cat >named.in <<'END'
fc2.weight F32 [1,3] 10 11 12
fc1.weight F32 [3,2] 1 2 3 4 5 6
fc1.bias F32 [3] 7 8 9
END
cat >named.out <<'END'
fc1.w F32 [2,3] 1 3 5 2 4 6
fc1.b F32 [3] 7 8 9
fc2.w F32 [3,1] 10 11 12
END
check 'a layer takes the module of its name, transposed' gives named
sed 's/^/model.part./' named.in >prefixed.in && cp named.g prefixed.g && cp named.out prefixed.out
check 'a prefix that all names have does not matter' gives prefixed
./make named.safetensors <named.in
again() {
    "$gplan" weights named.safetensors named.g -o first.safetensors &&
        "$gplan" weights first.safetensors named.g -o second.safetensors &&
        cmp first.safetensors second.safetensors
}
check 'a file of the model itself is taken as it is' again
over() { # the file that is read is replaced by what is written, whole
    cp named.safetensors over.safetensors && "$gplan" weights over.safetensors named.g -o over.safetensors &&
        cmp over.safetensors first.safetensors
}
check 'a file can be replaced by what it becomes' over

# A net of torch's layers, stored in another order than they run in: 10 after 9, shortcut first.
cat >net.g <<'END'
model net(batch B = 2)
input x : f32[B, 2, 4, 4]
block cell(x, n) {
  shortcut = conv2d(x, n, kernel = 1)
  h = relu(batchnorm(conv2d(x, n, kernel = 1, bias = false)))
  return shortcut + batchnorm(conv2d(h, n, kernel = 1, bias = false))
}
h = cell(x, 3)
h = cell(h, 1)
h = prelu(h)
output y = dense(flatten(h), 2)
END
number=0
tensor() { # NAME SHAPE COUNT: numbers that stand nowhere else
    printf '%s F32 %s' "$1" "$2"
    for _ in $(seq "$3"); do number=$((number + 1)) && printf ' %s' "$number"; done
    echo
}
norm() { # MODULE N
    tensor "$1.weight" "[$2]" "$2"
    tensor "$1.bias" "[$2]" "$2"
    tensor "$1.running_mean" "[$2]" "$2"
    tensor "$1.running_var" "[$2]" "$2"
    echo "$1.num_batches_tracked I64 [] 5"
}
{
    tensor body.9.shortcut.weight '[3,2,1,1]' 6
    tensor body.9.shortcut.bias '[3]' 3
    tensor body.9.conv1.weight '[3,2,1,1]' 6
    norm body.9.bn1 3
    tensor body.9.conv2.weight '[3,3,1,1]' 9
    norm body.9.bn2 3
    tensor body.10.shortcut.weight '[1,3,1,1]' 3
    tensor body.10.shortcut.bias '[1]' 1
    tensor body.10.conv1.weight '[1,3,1,1]' 3
    norm body.10.bn1 1
    tensor body.10.conv2.weight '[1,1,1,1]' 1
    norm body.10.bn2 1
    tensor act.weight '[1]' 1
    tensor head.bias '[2]' 2
} >ordered.in
echo 'head.weight F32 [2,16] 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32' >>ordered.in
LC_ALL=C sort ordered.in >net.in
"$gplan" params net.g --emit csv | tail -n +2 | cut -d, -f1 >net.names
awk -F ' ' -v OFS=' ' '
    NR == FNR { if ($1 !~ /tracked/) { count++; line[count] = $0; name[count] = $1 } next }
    {
        text = line[++at]
        if (name[at] == "head.bias") { text = line[count]; bias = line[at] }
        if (name[at] == "head.weight") text = bias
        sub(/^[^ ]* /, "", text)
        print $1, text
    }' ordered.in net.names |
    sed 's/^\(.*\) F32 \[2,16\] .*/\1 F32 [16,2] 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31 16 32/' >net.out
check 'layers of other names are told by shapes and numbers' gives net
listed() {
    "$gplan" weights net.safetensors net.g >list && grep -qxF 'ignored in the file: 4' list &&
        grep -qF 'body.*.bn*.num_batches_tracked  I64[], 4 of them' list &&
        grep -qxF 'net: 27 of 27 parameters found, 0 of them by the map' list &&
        grep -qF 'y.w f32[16, 2] = head.weight F32[2, 16], transposed' list &&
        [ -z "$("$gplan" weights net.safetensors net.g --quiet)" ]
}
check 'the list says what comes from where, and what is ignored' listed

# What differs in words alone is never guessed.
cat >alike.g <<'END'
model alike(batch B = 2)
input x : f32[B, 2]
h = x
repeat i in 0..2 { h = layernorm(dense(h, 2, name = "a")) + dense(h, 2, name = "b") }
output y = h
END
{
    for i in 0 1; do
        for part in key query; do
            tensor "l.$i.$part.weight" '[2,2]' 4
            tensor "l.$i.$part.bias" '[2]' 2
        done
        tensor "l.$i.norm.weight" '[2]' 2
        tensor "l.$i.norm.bias" '[2]' 2
    done
} >alike.in
./make alike.safetensors <alike.in
refuses 1 'a.0 (and 1 like it) wants weight[2, 2] bias[2], and it is not clear from where' alike.safetensors alike.g -o out2.safetensors
refuses 1 'l.0.key has these' alike.safetensors alike.g
refuses 1 'hint: say it in a file for --map, e.g. a.0.* = l.0.key.*' alike.safetensors alike.g --partial
echo 'a.{i}.* = l.{i}.query.*' >alike.map
mapped() {
    "$gplan" weights alike.safetensors alike.g --map alike.map >list &&
        grep -qF 'a.1.w f32[2, 2] = l.1.query.weight F32[2, 2], transposed' list &&
        grep -qF 'b.1.w f32[2, 2] = l.1.key.weight F32[2, 2], transposed' list &&
        grep -qxF 'alike: 12 of 12 parameters found, 4 of them by the map' list
}
check 'a map says one, and the rest is clear' mapped

# Numbers count where shapes bear out that they are the order of the model, and not by themselves.
cat >turns.g <<'END'
model turns(batch B = 2)
input x : f32[B, 2]
h = dense(x, 2, name = "p")
h = dense(h, 3, name = "q")
h = dense(h, 2, name = "r")
h = dense(h, 2, name = "s")
output y = dense(h, 3, name = "t")
END
turns() { # OUTPUTS,INPUTS of each layer
    number=0
    layer=0
    for shape in "$@"; do
        tensor "l.$layer.weight" "[$shape]" $((${shape%,*} * ${shape#*,}))
        tensor "l.$layer.bias" "[${shape%,*}]" "${shape%,*}"
        layer=$((layer + 1))
    done >turns.in
    ./make turns.safetensors <turns.in
}
turns 2,2 3,2 2,3 2,2 3,2
in_turn() {
    "$gplan" weights turns.safetensors turns.g >list && sed -n 's/^\(.\)\.w .* = l\.\(.\)\..*/\1\2/p' list >pairs &&
        [ "$(tr '\n' ' ' <pairs)" = 'p0 q1 r2 s3 t4 ' ]
}
check 'layers of other words are told by the order of all shapes' in_turn
turns 3,2 2,2 2,3 2,2 3,2
refuses 1 'p wants weight[2, 2] bias[2], and it is not clear from where' turns.safetensors turns.g
# Nor where one more is left than layers want, or where words tell modules apart: files are sorted.
turns 2,2 3,2 2,3 2,2 3,2 2,2
refuses 1 'p wants weight[2, 2] bias[2], and it is not clear from where' turns.safetensors turns.g
turns 2,2 3,2 2,3 2,2 3,2
sed 's/^l\.0/a/; s/^l\.1/b/; s/^l\.2/c/; s/^l\.3/d/; s/^l\.4/e/' turns.in | ./make turns.safetensors
refuses 1 'p wants weight[2, 2] bias[2], and it is not clear from where' turns.safetensors turns.g
cat >equal.g <<'END'
model equal(batch B = 2)
input x : f32[B, 2]
h = dense(x, 2, name = "b")
output y = dense(h, 2, name = "a")
END
turns 2,2 2,2
refuses 1 'b wants weight[2, 2] bias[2], and it is not clear from where' turns.safetensors equal.g

# torch.nn.MultiheadAttention has its projections in one; others one by one.
cat >attention.g <<'END'
model attention(batch B = 1)
input x : f32[B, 3, 2]
output y = attention(x, heads = 1, name = "att")
END
cat >attention.in <<'END'
layers.0.in_proj_bias F32 [6] 13 14 15 16 17 18
layers.0.in_proj_weight F32 [6,2] 1 2 3 4 5 6 7 8 9 10 11 12
layers.0.out_proj.bias F32 [2] 23 24
layers.0.out_proj.weight F32 [2,2] 19 20 21 22
END
cat >attention.out <<'END'
att.wq F32 [2,2] 1 3 2 4
att.bq F32 [2] 13 14
att.wk F32 [2,2] 5 7 6 8
att.bk F32 [2] 15 16
att.wv F32 [2,2] 9 11 10 12
att.bv F32 [2] 17 18
att.wo F32 [2,2] 19 21 20 22
att.bo F32 [2] 23 24
END
check 'projections of attention in one tensor' gives attention
cp attention.g each.g && cp attention.out each.out
cat >each.in <<'END'
self_attn.q_proj.weight F32 [2,2] 1 2 3 4
self_attn.q_proj.bias F32 [2] 13 14
self_attn.k_proj.weight F32 [2,2] 5 6 7 8
self_attn.k_proj.bias F32 [2] 15 16
self_attn.v_proj.weight F32 [2,2] 9 10 11 12
self_attn.v_proj.bias F32 [2] 17 18
self_attn.o_proj.weight F32 [2,2] 19 20 21 22
self_attn.o_proj.bias F32 [2] 23 24
END
check 'projections of attention one by one' gives each

# ---- Dtypes ----------------------------------------------------------------------------------

cat >dtypes.g <<'END'
model dtypes(batch B = 1)
input x : f32[B, 2]
param half : [2]
param brain : [3]
param wide : [2]
param bytes : u8[2]
const ids : i32[2] = [4, 5]
const own : f32[3] = 0.5
output y = x * half * wide * sum(brain) + sum(cast(bytes, f32)) + sum(own) + sum(cast(ids, f32))
END
cat >dtypes.in <<'END'
half F16 [2] 0.5 -65504
brain BF16 [3] 1.5 -3e38 9.18355e-41
wide F64 [2] 0.1 -1e-300
bytes I64 [2] 0 255
ids I64 [2] -7 2147483647
END
cat >dtypes.out <<'END'
half F32 [2] 0.5 -65504
brain F32 [3] 1.5 -3.00406e+38 9.18355e-41
wide F32 [2] 0.1 -0
ids I32 [2] -7 2147483647
own F32 [3] 0.5 0.5 0.5
bytes U8 [2] 0 255
END
check 'halves and doubles become what the model has' gives dtypes
told() {
    "$gplan" weights dtypes.safetensors dtypes.g >list && grep -qxF 'converted from f16 to f32: 1' list &&
        grep -qxF 'converted from bf16 to f32: 1' list && grep -qxF 'converted from f64 to f32: 1' list &&
        grep -qxF 'converted from i64 to u8: 1' list
}
check 'conversions are counted' told
cat >narrow.g <<'END'
model narrow(batch B = 1)
input x : f32[B, 2]
param half : f16[2]
param brain : bf16[2]
param same : f16[1]
output y = x * cast(half, f32) + cast(brain, f32) * cast(same, f32)
END
cat >narrow.in <<'END'
half F32 [2] 0.1 -65504
brain F64 [2] 0.1 3e38
same F16 [1] 9.18355e-41
END
cat >narrow.out <<'END'
half F16 [2] 2e66 fbff
brain BF16 [2] 3dcd 7f62
same F16 [1] 0000
END
check 'f32 and f64 are rounded to 16 bits, once' gives narrow
sed 's/-65504/65520/' narrow.in >wrong.in && ./make wrong.safetensors <wrong.in &&
    refuses 1 'half has the number 65520, which f16 does not hold' wrong.safetensors narrow.g -o out2.safetensors
wrong() { # LINE MESSAGE: instead of the line with its name
    grep -v "^${1%% *} " dtypes.in >wrong.in && echo "$1" >>wrong.in && ./make wrong.safetensors <wrong.in &&
        refuses 1 "$2" wrong.safetensors dtypes.g -o out2.safetensors
}
wrong 'wide F64 [2] 0 1e39' 'wide has the number 1e+39, which f32 does not hold'
wrong 'bytes I64 [2] 0 256' 'bytes has the number 256, which u8 does not hold'
wrong 'ids I64 [2] 0 2147483648' 'ids has the number 2147483648, which i32 does not hold'
wrong 'half I32 [2] 1 2' 'half is I32, which does not become f32'
wrong 'bytes F32 [2] 1 2' 'bytes is F32, which does not become u8'

# ---- Maps ------------------------------------------------------------------------------------

cat >cut.g <<'END'
model cut(batch B = 1, C = 2, T = 2)
input x : f32[B, C]
param place : [T, C]
param flat : [C]
block layer(x) {
  q = dense(x, C)
  return q + dense(x, C, name = "v")
}
h = x
repeat i in 0..2 { h = layer(h) }
output y = h + sum(place) + flat
END
cat >cut.in <<'END'
top.place F32 [1,3,2] 1 2 3 4 5 6
top.flat F32 [2,2] 7 8 9 10
top.h.1.attn.weight F32 [2,4] 11 12 13 14 15 16 17 18
top.h.1.attn.bias F16 [4] 19 20 21 22
top.h.2.attn.weight F64 [2,4] 23 24 25 26 27 28 29 30
top.h.2.attn.bias F32 [4] 31 32 33 34
top.h.2.extra F8_E4M3 [3] 0 0 0
END
cat >cut.out <<'END'
place F32 [2,2] 3 4 5 6
flat F32 [2] 8 10
layer.0.q.w F32 [2,2] 11 12 15 16
layer.0.q.b F32 [2] 19 20
layer.0.v.w F32 [2,2] 13 17 14 18
layer.0.v.b F32 [2] 21 22
layer.1.q.w F32 [2,2] 23 24 27 28
layer.1.q.b F32 [2] 31 32
layer.1.v.w F32 [2,2] 25 29 26 30
layer.1.v.b F32 [2] 33 34
END
cat >cut.map <<'END'
# Slices in numbers and in parameters of the model; a number takes its axis out.
place = place[0, 1:T+1]
"flat" = "top.flat"[:, 1]
layer.{i}.q.w = h.{i+1}.attn.weight[:, 0:C]   # after a line too
layer.{i}.q.b = h.{i+1}.attn.bias[:C]
layer.{i}.v.w = h.{i+1}.attn.weight[:, C:2*C] transposed
layer.{i}.v.b = h.{i+1}.attn.bias[4/2:]

ignore *.nothing
END
cp cut.map whole.map
check 'slices, transposes and numbers of a map' gives cut --map cut.map
left() {
    "$gplan" weights cut.safetensors cut.g --map cut.map >list && grep -qxF 'left over in the file: 1' list &&
        grep -qxF '  top.h.2.extra  F8_E4M3[3]' list && echo 'ignore *.extra' | cat cut.map - >more.map &&
        "$gplan" weights cut.safetensors cut.g --map more.map >list && grep -qxF 'ignored in the file: 1' list &&
        ! grep -q 'left over' list
}
check 'what is left over in the file is listed, or ignored' left
maps() { # LINE PLACE MESSAGE: instead of the line of cut.map that begins like it, or after all
    grep -vF "$(echo "$1" | sed 's/ = .*/ = /')" cut.map >wrong.map
    echo "$1" >>wrong.map
    line=$(wc -l <wrong.map)
    refuses 1 "wrong.map:$line:$2: error: $3" cut.safetensors cut.g --map wrong.map -o out2.safetensors
}
maps 'place = nowhere' 9 'the file has no tensor nowhere'
maps 'place = bias' 9 '2 tensors of the file have names that end in bias'
maps 'plaec = place[0, 1:3]' 1 'the model has no parameter plaec'
maps 'layer.{i}.x.* = h.{i}.attn.*' 1 'the model has no layer layer.{i}.x'
maps 'place = place' 9 'place is f32[2, 2] in the model, but this is [1, 3, 2], from top.place F32[1, 3, 2]'
maps 'place = place[0, 2:4]' 18 'top.place is F32[1, 3, 2]: axis 1 has no 2:4'
maps 'place = place[0, 1:1]' 18 'top.place is F32[1, 3, 2]: axis 1 has no 1:1'
maps 'place = place[0, 1:3, :, :]' 26 'top.place is F32[1, 3, 2]: it has no axis 3'
maps 'place = place[0, 1:X]' 20 'X is no parameter of the model'
maps 'place = place[0, 1:]]' 21 'expected transposed or the end of the line'
maps 'place = place[0, 3/2:]' 19 '3 / 2 is no whole number'
maps 'place = place[0, 99999999999*99999999999:]' 29 'the number is too large'
maps 'place = place[0, 1:3' 21 "expected ']'"
maps 'place = place[0, 1:3] transpose' 23 'expected transposed or the end of the line'
maps 'place' 6 "expected '='"
maps 'place =' 8 'expected the name of a tensor of the file'
maps '= place' 1 'expected a parameter of the model'
maps 'place = "place' 9 'the name is not closed'
maps 'layer.{i}.q.b = h.{k}.attn.bias[0:C]' 17 '{k} is not in the name before the ='
sed -i '/^layer.*q/d' cut.map
maps 'layer.{i}.q.* = h.{i+1}.attn.*' 17 'h.1.attn of the file does not have the tensors and shapes of layer.0.q, dense'
maps 'layer.{i}.q.* = h.{i+1}.attn' 17 '.* must be on both sides or on neither'
maps 'layer.{i}.q.* = h.{i+1}.attn.* transposed' 17 'a whole layer takes no slice and no transposed'
maps 'ignore' 7 'expected the name of a tensor'
maps 'ignore a b' 10 'expected the end of the line'
cp whole.map cut.map
(cat cut.map && echo 'layer.1.q.b = h.1.attn.bias[0:C]') >twice.map
refuses 1 'twice.map:10:1: error: layer.1.q.b has its line already' cut.safetensors cut.g --map twice.map
refuses 1 'twice.map:5:1: note: it is this one' cut.safetensors cut.g --map twice.map
sed 's/ transposed//; s/weight\[:, C:2\*C\]/weight[0:1]/' cut.map >shape.map
refuses 1 'layer.0.v.w is f32[2, 2] in the model, but this is [1, 4], from top.h.1.attn.weight F32[2, 4]' cut.safetensors cut.g --map shape.map
echo 'plaec = place' >wrong.map
refuses 1 'hint: did you mean place?' cut.safetensors cut.g --map wrong.map
refuses 1 'nowhere.map: error: cannot open' cut.safetensors cut.g --map nowhere.map
printf 'place = place\0[0, 1:3]\n' >nul.map
refuses 1 'nul.map: error: it contains a zero byte' cut.safetensors cut.g --map nul.map

# ---- What is missing -------------------------------------------------------------------------

grep -v fc2 named.in >part.in && ./make part.safetensors <part.in
refuses 1 '1 parameter of the model got nothing: fc2.w' part.safetensors named.g -o out2.safetensors
refuses 1 'left over in the model: 1' part.safetensors named.g -o out2.safetensors
refuses 1 '  fc2.w  f32[3, 1]' part.safetensors named.g
sed 's/^fc2.weight .*/fc2.weight F32 [1,4] 1 2 3 4/' named.in >other.in && ./make other.safetensors <other.in
refuses 1 'fc2.weight is F32[1, 4], but fc2.w wants [1, 3], transposed' other.safetensors named.g -o out2.safetensors
cat >reset.c <<'END'
#include "named.h"
#include <stdio.h>
int main(int count, char **names)
{
    static _Alignas(64) unsigned char arena[NAMED_ARENA_BYTES];
    named m;
    (void)count;
    if (named_init(&m, arena, sizeof arena))
        return 1;
    named_reset(&m, 7);
    if (names[1][0] != '-' && named_load(&m, names[1])) {
        puts(named_error(&m));
        return 1;
    }
    return named_save(&m, names[2]);
}
END
partial() { # what IN does not have is what a reset gives; emitted code loads it
    "$gplan" weights other.safetensors named.g --partial --seed 7 -o part.out.safetensors >list &&
        grep -qxF 'left over in the model: 1' list && grep -qxF '  fc2.weight  F32[1, 4]' list &&
        "$gplan" named.g -o named.c && "$cc" -O1 named.c reset.c -lm -o reset &&
        ./reset - reset.safetensors && ./reset part.out.safetensors loaded.safetensors &&
        ./show part.out.safetensors >part.lines && ./show loaded.safetensors >loaded.lines &&
        ./show reset.safetensors >reset.lines && cmp part.lines loaded.lines &&
        [ "$(grep fc2 reset.lines)" = "$(grep fc2 part.lines)" ] && grep fc1 part.lines >fc1.lines &&
        grep fc1 named.out | cmp - fc1.lines
}
check 'with --partial the rest begins as after a reset' partial

# Several files are one, as large models are stored.
grep fc2 named.in >two.in && ./make two.safetensors <two.in
shards() {
    "$gplan" weights part.safetensors two.safetensors named.g -o out.safetensors && ./show out.safetensors | cmp - named.out
}
check 'several files are one' shards
refuses 1 'fc2.weight is also in named.safetensors' named.safetensors two.safetensors named.g

# ---- Files that are none ---------------------------------------------------------------------

entry() { # FIELDS...: of fc2.weight, in a file with the 12 bytes that it wants
    printf '{"fc2.weight":{%s},"fc1.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}}' "$1" >header
    ./make bad.safetensors header 36
}
bad() { # FIELDS MESSAGE
    entry "$1" && refuses 1 "bad.safetensors: error: $2" bad.safetensors named.g -o out2.safetensors
}
bad '"dtype":"F32","shape":[1,6],"data_offsets":[0,24]' 'fc2.weight and fc1.weight share bytes'
bad '"dtype":"F32","shape":[1,3],"data_offsets":[25,37]' 'the file is truncated: fc2.weight ends after it'
bad '"dtype":"F32","shape":[1,3],"data_offsets":[0,8]' 'fc2.weight: F32[1, 3] takes 12 bytes, but its place in the file has 8'
bad '"dtype":"F32","shape":[1,2],"data_offsets":[0,8]' '4 bytes before fc1.weight are of no tensor'
bad '"dtype":"F32","shape":[1,3],"data_offsets":[12,0]' 'fc2.weight: its data_offsets are wrong'
bad '"dtype":"F32","shape":[1,3],"data_offsets":[-1,11]' 'fc2.weight: its data_offsets are wrong'
bad '"dtype":"F32","shape":[-1,-3],"data_offsets":[0,12]' 'fc2.weight: a dimension that is no size'
bad '"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,12]' 'fc2.weight: its shape has more numbers than fit'
bad '"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,12]' 'not a safetensors file: its header is no JSON: too big integer'
bad '"dtype":"F32","shape":[1,3]' 'fc2.weight: its dtype, shape or data_offsets are missing'
bad '"dtype":"F32","shape":"x","data_offsets":[0,12]' 'fc2.weight: its dtype, shape or data_offsets are missing'
bad '"dtype":3,"shape":[1,3],"data_offsets":[0,12]' 'fc2.weight: its dtype, shape or data_offsets are missing'
bad '"dtype":"F32","shape":[1,3],"data_offsets":[0.5,12]' 'fc2.weight: its data_offsets are wrong'
bad '"dtype":"F32","dtype":"F32","shape":[1,3],"data_offsets":[0,12]' 'not a safetensors file: its header is no JSON: duplicate object key'
bad '"dtype":"F32","shape":[1,1,1,1,1,1,1,1,3],"data_offsets":[0,12]' 'fc2.weight is F32[1, 1, 1, 1, 1, 1, 1, 1, ...], but fc2.w wants [1, 3], transposed'
printf '{}' >header && ./make bad.safetensors header 4
refuses 1 '4 bytes follow the last tensor' bad.safetensors named.g
printf '[]' >header && ./make bad.safetensors header 0
refuses 1 'its header is no JSON object' bad.safetensors named.g
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' >header && ./make bad.safetensors header 0
refuses 1 'its header is no JSON: maximum parsing depth reached' bad.safetensors named.g
printf '\377\377\377\377\377\377\377\377{}' >bad.safetensors
refuses 1 'truncated: its header would end after it' bad.safetensors named.g
printf '\000\000\000\010\000\000\000\000' >bad.safetensors && truncate -s 200M bad.safetensors
refuses 1 'its header would have 134217728 bytes' bad.safetensors named.g
: >bad.safetensors
refuses 1 'fewer than 8 bytes' bad.safetensors named.g
rm bad.safetensors && mkdir bad.safetensors
refuses 1 'is a folder' bad.safetensors named.g
rmdir bad.safetensors && mkfifo bad.safetensors
refuses 1 'is no regular file' bad.safetensors named.g
refuses 1 'nowhere.safetensors: error: cannot open the file' nowhere.safetensors named.g
cut_short() {
    bytes=$(wc -c <named.safetensors)
    at=0
    while [ "$at" -lt "$bytes" ]; do
        head -c "$at" named.safetensors >short.safetensors
        "$gplan" weights short.safetensors named.g -o short.out.safetensors >output 2>message
        [ $? -eq 1 ] && [ ! -e short.out.safetensors ] && grep -q '^short.safetensors: error: ' message || return 1
        at=$((at + 1))
    done
}
check 'a file that is cut after any byte is refused' cut_short
refuses 2 'gplan weights IN.safetensors MODEL -o OUT.safetensors' named.safetensors
refuses 2 'gplan weights IN.safetensors MODEL -o OUT.safetensors' named.g
refuses 2 'gplan weights IN.safetensors MODEL -o OUT.safetensors' named.safetensors named.g -o out.bin
refuses 1 'out.safetensors: error: cannot be written: No such file or directory' named.safetensors named.g --quiet -o no/such/out.safetensors
refuses 1 'nowhere.g: error: ' named.safetensors nowhere.g

# ---- The maps of examples ----------------------------------------------------------------------

# Small models with the names of Hugging Face: every parameter finds its tensor.
{
    tensor transformer.wte.weight '[5,2]' 10
    tensor transformer.wpe.weight '[4,2]' 8
    for i in 0 1; do
        h=transformer.h.$i
        tensor $h.ln_1.weight '[2]' 2
        tensor $h.ln_1.bias '[2]' 2
        tensor $h.attn.c_attn.weight '[2,6]' 12
        tensor $h.attn.c_attn.bias '[6]' 6
        tensor $h.attn.c_proj.weight '[2,2]' 4
        tensor $h.attn.c_proj.bias '[2]' 2
        echo "$h.attn.bias BOOL [1,1,2,2] 1 0 1 1"
        tensor $h.ln_2.weight '[2]' 2
        tensor $h.ln_2.bias '[2]' 2
        tensor $h.mlp.c_fc.weight '[2,8]' 16
        tensor $h.mlp.c_fc.bias '[8]' 8
        tensor $h.mlp.c_proj.weight '[8,2]' 16
        tensor $h.mlp.c_proj.bias '[2]' 2
    done
    tensor transformer.ln_f.weight '[2]' 2
    tensor transformer.ln_f.bias '[2]' 2
} >gpt2.in
gpt2() {
    ./make gpt2.safetensors <gpt2.in && "$gplan" weights gpt2.safetensors "$examples/gpt2.g" -D L=2 -D C=2 -D H=1 \
        -D V=5 -D T=3 --map "$examples/weights/gpt2_hf.map" -o gpt2.out.safetensors >list &&
        grep -qxF 'gpt2: 36 of 36 parameters found, 36 of them by the map' list && ! grep -q 'left over' list &&
        ./show gpt2.out.safetensors >gpt2.out &&
        [ "$(sed -n 's/^layer.1.attention.0.wk F32 \[2,2\] //p' gpt2.out)" = \
            "$(sed -n 's/^transformer.h.1.attn.c_attn.weight F32 \[2,6\] //p' gpt2.in | cut -d ' ' -f 3,4,9,10)" ] &&
        [ "$(sed -n 's/^wpe F32 \[3,2\] //p' gpt2.out)" = \
            "$(sed -n 's/^transformer.wpe.weight F32 \[4,2\] //p' gpt2.in | cut -d ' ' -f 1-6)" ]
}
check "Hugging Face's gpt2" gpt2
{
    tensor embeddings.word_embeddings.weight '[5,2]' 10
    tensor embeddings.position_embeddings.weight '[4,2]' 8
    tensor embeddings.token_type_embeddings.weight '[2,2]' 4
    tensor embeddings.LayerNorm.weight '[2]' 2
    tensor embeddings.LayerNorm.bias '[2]' 2
    l=encoder.layer.0
    for part in attention.self.query attention.self.key attention.self.value attention.output.dense; do
        tensor $l.$part.weight '[2,2]' 4
        tensor $l.$part.bias '[2]' 2
    done
    for part in attention.output.LayerNorm output.LayerNorm; do
        tensor $l.$part.weight '[2]' 2
        tensor $l.$part.bias '[2]' 2
    done
    tensor $l.intermediate.dense.weight '[8,2]' 16
    tensor $l.intermediate.dense.bias '[8]' 8
    tensor $l.output.dense.weight '[2,8]' 16
    tensor $l.output.dense.bias '[2]' 2
    tensor pooler.dense.weight '[2,2]' 4
    tensor pooler.dense.bias '[2]' 2
} >bert.in
bert() { # a BertModel: it has no classifier
    ./make bert.safetensors <bert.in && set -- bert.safetensors "$examples/bert.g" -D L=1 -D C=2 -D H=1 -D V=5 -D P=4 \
        -D T=3 -D K=3 --map "$examples/weights/bert_hf.map" -o bert.out.safetensors &&
        ! "$gplan" weights "$@" >list 2>&1 && "$gplan" weights "$@" --partial >list &&
        grep -qxF 'bert: 23 of 25 parameters found, 23 of them by the map' list &&
        grep -qxF 'left over in the model: 2' list && ! grep -q 'left over in the file' list &&
        ./show bert.out.safetensors >bert.out &&
        [ "$(sed -n 's/^layer.0.mlp.dense.0.w F32 \[2,8\] //p' bert.out)" = \
            "$(sed -n "s/^$l.intermediate.dense.weight F32 \[8,2\] //p" bert.in | tr ' ' '\n' | awk 'NR % 2 { a = a " " $0; next } { b = b " " $0 } END { print substr(a, 2) b }')" ]
}
check "Hugging Face's bert" bert

finish
