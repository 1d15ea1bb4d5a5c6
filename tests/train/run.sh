#!/bin/sh
# Training, from the model to the trained parameters: tests/train/run.sh path/to/gplan
# Emitted models are trained beside references in double (reference.h), stopped, killed, resumed,
# cut into micro-batches, and set to tasks that they must learn.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
examples=$root/examples
cd "$work" || exit 1
loud=yes
strict='-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -Wno-unused-function'
sanitize='-g -O0 -fsanitize=address,undefined -fno-sanitize-recover=undefined'
export ASAN_OPTIONS=detect_leaks=0

emit() { # MODEL SOURCE OPTIONS...: MODEL.c and MODEL.h
    emitted=$1
    source=$2
    shift 2
    "$gplan" "$source" "$@" --quiet -o "$emitted.c"
}

build() { # MODEL PROGRAM OUT FLAGS...
    emitted=$1
    main=$2
    out=$3
    shift 3
    capitals=$(echo "$emitted" | tr '[:lower:]' '[:upper:]')
    # shellcheck disable=SC2086
    gcc $strict "$@" "-DMODEL=$emitted" "-DARENA=${capitals}_ARENA_BYTES" -include "$emitted.h" \
        -I"$here" "$here/$main.c" "$emitted.c" -lm -o "$out"
}

# ---- Beside references in double --------------------------------------------------------------

flags=$sanitize
reference() { # MODEL SOURCE OPTIONS ARGUMENTS...
    emitted=$1
    source=$2
    options=$3
    shift 3
    # shellcheck disable=SC2086
    emit "$emitted" "$source" $options && build "$emitted" "$emitted" "$emitted" $flags &&
        "./$emitted" "$@"
}

check mlp reference mlp "$examples/mlp.g" '-D B=4 -D H=19' sgd lr=0.1 momentum=0.9 tolerance=1e-5
check lenet reference lenet "$examples/lenet.g" '-D B=2' sgd lr=0.05 momentum=0.9 tolerance=1e-5
check resnet reference resnet "$here/resnet.g" '' \
    sgd lr=0.05 momentum=0.9 weight_decay=1e-3 tolerance=1e-5
check unet reference unet "$here/unet.g" '' sgd lr=0.1 momentum=0.9 tolerance=1e-5
gpt2='-D B=3 -D T=7 -D C=12 -D L=2 -D H=3 -D V=13'
check gpt2 reference gpt2 "$examples/gpt2.g" "$gpt2" adamw lr=3e-4 weight_decay=0.1 clip=1
check 'gpt2 in chunks' reference gpt2 "$examples/gpt2.g" "$gpt2 --chunked-loss always" \
    adamw lr=3e-4 weight_decay=0.1 clip=1
check 'gpt2 in micro-batches' reference gpt2 "$examples/gpt2.g" "$gpt2 --accumulate 3" \
    adamw lr=3e-4 weight_decay=0.1 clip=1
check metrics reference metric "$here/metric.g" ''
check 'metrics in chunks' reference metric "$here/metric.g" '--chunked-loss always'
check 'metrics in micro-batches' reference metric "$here/metric.g" '--accumulate 3'
check 'metrics in chunks and micro-batches' reference metric "$here/metric.g" \
    '--chunked-loss always --accumulate 2'
sums() { # MODEL SOURCE OPTIONS...: trains it in micro-batches, as before to the bit
    summed=$1
    emit "$@" --accumulate 3 && build "$summed" trainer sums $flags && ./sums 3 now.safetensors &&
        { [ -f "$summed.safetensors" ] || cp now.safetensors "$summed.safetensors"; } &&
        cmp now.safetensors "$summed.safetensors"
}
all_sums() { # MODEL SOURCE OPTIONS...
    check "$1, sums of gradients" sums "$@" --epilogues never
    check "$1, added where they lie" sums "$@"
    check "$1, added where they lie, with threads" sums "$@" --threads 3
    summed=$1
    shift
    check "$summed, added where they lie, in the smallest arena" sums "$summed" "$@" --budget \
        "$("$gplan" "$@" --accumulate 3 --min-budget)"
}
# shellcheck disable=SC2086
all_sums gpt2 "$examples/gpt2.g" $gpt2
all_sums added "$here/added.g"
pools() { # SOURCES AND OPTIONS...: where relu runs before pools, and after them
    emit pools "$@" && build pools trainer pools $flags && ./pools 4 now.safetensors &&
        { [ -f pools.safetensors ] || cp now.safetensors pools.safetensors; } &&
        cmp now.safetensors pools.safetensors
}
check 'pools after a relu that is kept' pools "$here/pools.g" "$here/pools_kept.g"
check 'relu after its pools: the same bits' pools "$here/pools.g"
check 'relu after its pools, in the smallest arena' pools "$here/pools.g" --budget \
    "$("$gplan" "$here/pools.g" --min-budget | head -n 1)"
check 'tied, frozen, stopped' reference special "$here/special.g" '' \
    sgd lr=0.05 group=k frozen=1 group=still frozen=1
check 'tied, in micro-batches' reference special "$here/special.g" '--accumulate 3' \
    sgd lr=0.05 group=k frozen=1 group=still frozen=1 valid=4

# ---- Optimizers -------------------------------------------------------------------------------

flags=-O0 # what the sanitizers could find they have seen above
optimizer() { # STATEMENT OPTIONS ARGUMENTS...
    sed "s/OPTIMIZER/$1/" "$here/tiny.g" >tiny.g
    options=$2
    shift 2
    reference tiny tiny.g "$options" "$@" tolerance=1e-6
}

check sgd optimizer 'sgd(lr = 0.1)' '' sgd lr=0.1
check momentum optimizer 'sgd(lr = 0.1, momentum = 0.9)' '' sgd lr=0.1 momentum=0.9
check nesterov optimizer \
    'sgd(lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.05)' '' \
    sgd lr=0.1 momentum=0.9 nesterov=1 weight_decay=0.05
check adam optimizer 'adam(lr = 0.02, beta1 = 0.8, beta2 = 0.95, eps = 1e-6, weight_decay = 0.1)' \
    '' adam lr=0.02 beta1=0.8 beta2=0.95 eps=1e-6 weight_decay=0.1
check adamw optimizer 'adamw(lr = 0.02, weight_decay = 0.3)' '' adamw lr=0.02 weight_decay=0.3
check rmsprop optimizer 'rmsprop(lr = 0.01, alpha = 0.9, momentum = 0.7, weight_decay = 0.1)' '' \
    rmsprop lr=0.01 alpha=0.9 momentum=0.7 weight_decay=0.1
check adagrad optimizer 'adagrad(lr = 0.05, weight_decay = 0.1)' '' \
    adagrad lr=0.05 weight_decay=0.1
check lion optimizer 'lion(lr = 0.003, weight_decay = 0.5)' '' lion lr=0.003 weight_decay=0.5
check clip optimizer 'sgd(lr = 0.2) { clip = 0.1 }' '' sgd lr=0.2 clip=0.1
check clip_value optimizer 'sgd(lr = 0.2) { clip_value = 0.02 }' '' sgd lr=0.2 clip_value=0.02
check groups optimizer 'adam(lr = 0.02, weight_decay = 0.2) { \
group "*.b" { weight_decay = 0 }; group "fc1*" { lr = 0.005 } }' '' \
    adam lr=0.02 weight_decay=0.2 'group=*.b' weight_decay=0 'group=fc1*' lr=0.005
check cosine optimizer \
    'sgd(lr = 0.2) { schedule = cosine(steps = 8, warmup = 3, floor = 0.1) }' '' \
    sgd lr=0.2 schedule=cosine steps=8 warmup=3 floor=0.1
check linear optimizer 'sgd(lr = 0.2) { schedule = linear(steps = 9) }' '' \
    sgd lr=0.2 schedule=linear steps=9
check 'step schedule' optimizer \
    'sgd(lr = 0.2) { schedule = step(every = 3, factor = 0.5, warmup = 2) }' '' \
    sgd lr=0.2 schedule=step every=3 factor=0.5 warmup=2
check set_lr optimizer 'adam(lr = 0.02)' '' adam lr=0.02 set_lr=0.003

# ---- The loss scale of f16 ----------------------------------------------------------------------

scaled() { # STATEMENT LIMIT OPTIONS...
    sed "s/OPTIMIZER/$1/; s/LIMIT/$2/" "$here/scaled.g" >scaled.g
    shift 2
    emit scaled scaled.g "$@" && build scaled scaled overflow $flags && ./overflow overflow.safetensors
}
least_scaled() { # the same bits in the least memory, and all gradients are held in it
    scaled 'adamw(lr = 0.01)' clip && mv overflow.safetensors roomy.safetensors &&
        least=$("$gplan" scaled.g --min-budget) &&
        scaled 'adamw(lr = 0.01)' clip --budget "$least" --threads 3 &&
        cmp overflow.safetensors roomy.safetensors &&
        [ "$least" -gt "$(sed 's/ *LIMIT.*//; s/f16/bf16/; s/OPTIMIZER/adamw()/' "$here/scaled.g" |
            "$gplan" - --min-budget)" ]
}
check 'steps that overflow, in the least memory' least_scaled
check 'with state of 8 bits' scaled 'adam(lr = 0.01, state = 8bit)' clip
check 'with sgd, in micro-batches' scaled 'sgd(lr = 0.05, momentum = 0.9)' clip_value --accumulate 2
check 'with rmsprop' scaled 'rmsprop(lr = 0.002, momentum = 0.5)' clip --accumulate 4
check 'with adagrad' scaled 'adagrad(lr = 0.05)' clip_value
check 'with lion' scaled 'lion(lr = 0.003)' clip

# ---- 16 bits ------------------------------------------------------------------------------------

# Gradients of whole models stay within 4 roundings of those in f32, in the norm of all of them.
beside_f32() { # MODEL OPTIONS...
    sed 's/ using .*{$/ using sgd(lr = 1.0) {/; s/ using [a-z]*(.*)$/ using sgd(lr = 1.0)/
         s/clip = 1.0//' "$examples/$1.g" >sgd.g
    shift
    emit wide sgd.g "$@" --prefix wide || return 1
    for precision in bf16:0.0156 f16:0.00195; do
        emit half sgd.g "$@" --prefix half --precision ${precision%:*} &&
            gcc -std=c11 -D_GNU_SOURCE -O0 -I. "$here/narrow.c" wide.c half.c -lm -o narrow &&
            ./narrow ${precision#*:} || return 1
    done
}
check 'gradients of lenet in 16 bits' beside_f32 lenet -D B=4
# shellcheck disable=SC2086
check 'gradients of gpt2 in 16 bits' beside_f32 gpt2 $gpt2

# What is rounded is so wherever it lies: in the least memory, with threads, inside of products.
alike() { # PRECISION MODEL OPTIONS...
    set -- "$@" --precision "$1" --accumulate 1 --chunked-loss never
    shift
    model=$1
    shift
    least=$("$gplan" "$examples/$model.g" "$@" --min-budget)
    for plan in '--threads 1' "--budget $least --threads 3" '--epilogues never'; do
        # shellcheck disable=SC2086
        emit "$model" "$examples/$model.g" "$@" $plan && build "$model" trainer alike -O0 -fopenmp &&
            ./alike 1 now.safetensors && { [ "$plan" = '--threads 1' ] && mv now.safetensors first ||
            cmp first now.safetensors; } || return 1
    done
}
# shellcheck disable=SC2086
check 'gpt2 in bf16, planned in three ways' alike bf16 gpt2 $gpt2
check 'resnet50 in f16, planned in three ways' alike f16 resnet50 -D B=2 -D S=32 -D W=4 -D K=10
bert() { # the trainer draws kinds of segments as it draws classes
    sed 's/\[2, C\]/[16, C]/' "$examples/bert.g" >bert.g &&
        (examples=$PWD && alike bf16 bert -D B=2 -D T=16 -D L=2 -D V=200 -D C=32 -D H=4 -D K=16)
}
check 'bert in bf16, planned in three ways' bert

# Each op with a kernel for 16 bits, in a model that has no other: its branches are planned by it
# alone.
alone() { # CALL...: of x in bf16, [B, 4, 6, 6]
    for call; do
        printf '%s\n' 'model alone(batch B = 4)' 'input x : f32[B, 4, 6, 6]' 'input y : i32[B]' \
            "h = $call" \
            'train cross_entropy(dense(flatten(h), 4), y) using sgd(lr = 0.1)' |
            sed "s/X/cast(x * w, bf16)/g; 3a param w : [6]" >alone.g
        emit alone alone.g --precision bf16 && build alone trainer alone -O0 &&
            ./alone 2 alone.safetensors || { echo "$call"; return 1; }
    done
}
check "ops alone in bf16" alone 'upsample2d(X, scale = 2)' 'global_maxpool(X)' 'global_avgpool(X)' \
    'softmax(X, axis = 1)' 'log_softmax(X)' 'pad(X, [0, 0, 1, 1])' 'maxpool2d(X, 2)' 'avgpool2d(X, 2)' \
    'max(X, axis = 2)' 'rope(X)' 'cumsum(X, axis = 1)' 'layernorm(X)' 'batchnorm(X)' \
    'resize(X, size = [4, 9], mode = linear)' 'X[:, :, 1:3] + X[:, :, 3:5]' 'gather(X, y, axis = 1)' \
    'concat([X, X], axis = 1)' 'prod(sigmoid(X), axis = 2)' 'conv2d(X, 8, kernel = 3, groups = 4)' \
    'grid_sample(X, X[:, :, :, 0:2])' 'scatter(X, cast(X > 0, i32), X, axis = 1, reduction = max)' \
    'scatter(X, cast(X > 0, i32), X, axis = 1, reduction = add)' 'cast(argmax(X, axis = 1), f32) * w'

# ---- Micro-batches, and batches that are not full ----------------------------------------------

for times in 2 4 8; do
    check "adam in $times micro-batches" optimizer 'adam(lr = 0.02)' "--accumulate $times" \
        adam lr=0.02
    check "5 of 8 samples in $times micro-batches" optimizer 'sgd(lr = 0.2) { clip = 0.1 }' \
        "--accumulate $times" sgd lr=0.2 clip=0.1 valid=5
done
check '5 of 8 samples' optimizer 'adam(lr = 0.02)' '' adam lr=0.02 valid=5

refuses() { # MESSAGE OPTIONS...
    message=$1
    shift
    ! "$gplan" "$@" >refused 2>&1 && grep -q "$message" refused
}
check 'batch statistics are not cut' refuses 'resnet.g:9:.*batchnorm.*over the whole batch' \
    "$here/resnet.g" --accumulate 2
over_micro() {
    sed 's/batchnorm(x)/batchnorm(x, over = micro)/' "$here/resnet.g" >micro.g &&
        emit resnet micro.g --accumulate 2 && build resnet trainer micro $sanitize &&
        ./micro 3 micro.safetensors
}
check 'unless they are of a micro-batch' over_micro
turned() { # OP CALL: the batch along an axis that the op computes over
    printf '%s\n' 'model t(batch B = 8)' 'input x : f32[B, 16]' 'input y : i32[B]' "h = $2" \
        'train cross_entropy(dense(reshape(h, [B, 16]), 4), y) using sgd()' >turned.g
    "$gplan" turned.g --quiet && refuses "turned.g:4:5: error: $1 computes over the whole batch" \
        turned.g --accumulate 2 && grep -qF "$2" refused &&
        least=$("$gplan" turned.g --accumulate auto --min-budget) &&
        "$gplan" turned.g --accumulate auto --budget "$least" -o turned.c --quiet &&
        ! grep -q 'run.micro <' turned.c
}
check 'nor are positions of attention' turned attend \
    'attention(reshape(x, [1, B, 16]), heads = 2)'
check 'nor the height of an image' turned conv2d \
    'conv2d(reshape(x, [1, 1, B, 16]), 1, kernel = 3, pad = same)'
unreached() {
    printf '%s\n' 'model t(batch B = 4)' 'input x : f32[B, 8]' 'param w : [8, 8]' \
        'train mean(square(x @ batchnorm(w))) using sgd()' >unreached.g
    "$gplan" unreached.g --quiet && refuses 'unreached.g:4:23: error: running_stats would move' \
        unreached.g --accumulate 2
}
check 'nor do statistics move that no sample reaches' unreached
check 'nor rotary positions' turned rope 'rope(reshape(x, [1, 1, B, 16]))'
added() {
    sed 's/train cross_entropy(fc2, labels) using OPTIMIZER/param w : [3] = ones\
train cross_entropy(fc2, labels) + sum(w*w) using sgd()/' "$here/tiny.g" >added.g &&
        "$gplan" added.g --quiet && refuses 'not a loss over samples' added.g --accumulate 2
}
check 'a term of its own is not counted twice' added
check 'a model without train' refuses 'has no train statement' "$here/../emit/affine.g" --train

outputs() { # TIMES OPTIONS...: in as many micro-batches as the step has, and the same bits
    times=$1
    shift
    emit outputs "$here/outputs.g" --accumulate "$times" "$@" &&
        build outputs outputs parts $sanitize -DGPLAN_POISON -DGPLAN_CHECK_NAN \
            "-DNOT_IN_EVAL=$not_in_eval" $memory &&
        ./parts >"outputs.$times" &&
        cmp outputs.1 "outputs.$times" && [ "$(grep -c "run.micros = $times;" outputs.c)" -eq "$loops" ]
}
loops=0
memory=
not_in_eval=-1
check 'outputs at once' outputs 1
loops=3
for times in 2 4 8; do
    # a batch of one is not turned by a copy: forward runs at once, and eval leaves that output out
    [ $times -eq 8 ] && loops=2 && not_in_eval=1
    check "outputs in $times micro-batches" outputs $times
    check "outputs in $times micro-batches, in the least memory" outputs $times --budget \
        "$("$gplan" "$here/outputs.g" --accumulate $times --min-budget)"
done
in_place() { # of the outputs, the one whose batch is not first is copied, and no other
    emit outputs "$here/outputs.g" --accumulate 4 &&
        [ "$(grep -o '"collect [a-z]*' outputs.c | sort -u)" = '"collect turned' ]
}
check 'outputs are made in their place' in_place
memory=-DCALLERS_MEMORY
loops=3
not_in_eval=-1
check "outputs in the caller's memory" outputs 4 --io external --params external
mixed() { # what is of the whole batch is computed at once, and the step in micro-batches still
    sed 's/^output class.*/output class = mean(logits)/' "$here/outputs.g" >mixed.g &&
        emit mixed mixed.g --accumulate 4 && [ "$(grep -c 'run.micros = 4;' mixed.c)" -eq 2 ] &&
        grep -q '_class.*, of forward \*/' mixed.h && grep -q '_probs.*, of forward and eval' mixed.h
}
check 'an output of the whole batch' mixed

# ---- Running statistics -----------------------------------------------------------------------

statistics() { # MICRO-BATCHES OPTIONS...
    micros=$1
    shift
    emit statistics "$here/statistics.g" --accumulate "$micros" "$@" &&
        build statistics statistics running $sanitize -DGPLAN_POISON "-DMICROS=$micros" && ./running
}
for micros in 1 2; do
    check "a norm that is applied twice, $micros" statistics $micros
    check "the same in the least memory, $micros" statistics $micros --budget \
        "$("$gplan" "$here/statistics.g" --accumulate $micros --min-budget)"
done

says() { # NAME: NAME.g is refused, each mistake at its place, with what to do
    (cd "$here" && ! "$gplan" --color=never "$1.g") 2>said && diff "$here/$1.err" said
}
check 'statistics that a step cannot keep' says statistics_err
check 'a metric that micro-batches do not add up to' says metric_err
trained() { # by the optimizer as well
    printf 'model t(batch B = 4)\ninput x : f32[B, 8]\nparam s : [8] = ones\nparam z : [8]\n%s' \
        'train mean(batchnorm(x, s, z, z, s)) using sgd()' >trained.g
    refuses 'trained.g:5:12: error: batchnorm: z is trained, so it cannot hold the running mean' trained.g
}
check 'statistics that are trained' trained
read_too() { # what a step reads of them is what the step before left
    printf '%s\n' 'model t(batch B = 4)' 'input x : f32[B, 8]' 'param s : [8] = ones' 'param b : [8]' \
        'frozen param m : [8]' 'frozen param v : [8] = ones' 'h = batchnorm(x, s, b, m, v) * m + v' \
        'output o = batchnorm(h, s, b, m, v)' 'train mean(o * x) using sgd()' >read.g
    emit read read.g
}
check 'statistics that the model reads' read_too

# ---- Dropout ----------------------------------------------------------------------------------

masks() { # TIMES
    emit dropout "$here/dropout.g" --accumulate "$1" && build dropout dropout masks $sanitize &&
        ./masks >"masks.$1" && head -n 1 "masks.$1" && cmp masks.1 "masks.$1"
}
for times in 1 2 4 8; do
    check "masks in $times micro-batches" masks $times
done

# ---- Files ------------------------------------------------------------------------------------

check 'emit resume' emit resume "$here/resume.g" --threads 2
check 'build resume' build resume trainer trainer $sanitize
resume() {
    ./trainer 10 ten.safetensors && ./trainer 5 five.safetensors &&
        ./trainer 5 resumed.safetensors five.safetensors && cmp ten.safetensors resumed.safetensors
}
check '5 and 5 steps are 10, bit for bit' resume
coded() { # a layer whose state is codes, beside others that are too small for that
    sed 's/dense(x, 12)/dense(x, 512)/; s/lr = 0.01/lr = 0.01, state = 8bit/' "$here/resume.g" >coded.g &&
        mkdir coded && (cd coded && emit resume ../coded.g --threads 2 &&
        build resume trainer trainer $sanitize -fopenmp && resume &&
        "$gplan" ../coded.g --quiet -o plan.json && "$gplan" verify plan.json &&
        OMP_NUM_THREADS=1 ./trainer 10 one.safetensors && cmp ten.safetensors one.safetensors &&
        grep -q '"dense.0.w.adamw.m":{"dtype":"U8","shape":\[10,512\]' ten.safetensors &&
        grep -q '"dense.0.w.adamw.absmax":{"dtype":"F32","shape":\[2,20\]' ten.safetensors &&
        grep -q '"logits.w.adamw.m":{"dtype":"F32"' ten.safetensors)
}
check '5 and 5 steps are 10 with state of 8 bits, bit for bit' coded
narrow() { # PRECISION: dropout, moments and statistics in 16 bits
    mkdir "$1" && (cd "$1" && emit resume "$here/resume.g" --precision "$1" &&
        build resume trainer trainer -O0 && resume)
}
check '5 and 5 steps are 10 in f16, bit for bit' narrow f16
check '5 and 5 steps are 10 in bf16, bit for bit' narrow bf16
other_precision() { # runs go on in bf16, and f16's in f32; f16 lacks its loss scale, and says so
    (cd bf16 && ./trainer 5 other.safetensors ../five.safetensors) &&
        ./trainer 5 other.safetensors f16/five.safetensors &&
        ! (cd f16 && ./trainer 5 other.safetensors ../five.safetensors >said 2>&1) &&
        grep -qF 'train.loss_scale: is not in ../five.safetensors' f16/said
}
check 'runs that go on in another precision' other_precision
checks() {
    build resume trainer other -O0 -DGPLAN_POISON -DGPLAN_CHECK_NAN -DGPLAN_PROFILE &&
        ./other 10 other.safetensors && cmp ten.safetensors other.safetensors
}
check 'checks that are compiled in change no bit' checks
threads() {
    emit mlp "$examples/mlp.g" --threads 2 && build mlp trainer two -O1 -fopenmp &&
        ./two 3 two.safetensors && build mlp trainer one -O1 && ./one 3 one.safetensors &&
        cmp one.safetensors two.safetensors
}
check 'two threads change no bit' threads
parameters() { # what was saved for inference has no optimizer
    mkdir infer && (cd infer && emit resume "$here/resume.g" --infer) &&
        printf '#include "infer/resume.h"\n%s\n' '#include <stdlib.h>
int main(void)
{
    resume m;
    return resume_init(&m, aligned_alloc(64, RESUME_ARENA_BYTES + 64), RESUME_ARENA_BYTES) ||
           resume_load(&m, "ten.safetensors") || resume_save(&m, "parameters.safetensors");
}' >infer.c && gcc -I. infer.c infer/resume.c -lm -o infer/run && infer/run
}
check 'inference loads what training saved' parameters
check 'build api' build resume api api $sanitize
check 'rates, files, failures, progress' ./api api.safetensors parameters.safetensors
kills() {
    emit saver "$here/saver.g" && build saver saver saver -O2 && ./saver saver.safetensors 25
}
check 'killed while it saves' kills
several() {
    build saver savers savers -O2 -pthread && ./savers several.safetensors 12 &&
        ! ls several.safetensors.* 2>/dev/null
}
check 'threads and processes save to one path' several

# ---- Every compiler, every way to be called -----------------------------------------------------

compile() { # COMPILER FLAGS
    # shellcheck disable=SC2086
    for model in resume gpt2; do
        $1 -std=c11 -Wall -Wextra -Wpedantic -Werror $2 -c $model.c -o object.o || return 1
    done
}
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    check "$compiler -O0" compile $compiler '-O0 -DGPLAN_POISON -DGPLAN_CHECK_NAN -DGPLAN_PROFILE'
    check "$compiler -O3" compile $compiler "-O3 $([ $compiler = gcc ] && echo -fopenmp)"
done
example() { # full size
    emit example "$examples/$1.g" &&
        gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only example.c
}
for model in mlp lenet resnet50 mobilenetv2 unet vgg16 densenet121 inception bert gpt2 lstm; do
    check "$model trains in clean C" example $model
done
check 'C++ header' g++ -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only resume.h
external() {
    emit resume "$here/resume.g" --io external --params external &&
        build resume trainer external $sanitize -DCALLERS_MEMORY &&
        ./external 10 external.safetensors &&
        cmp ten.safetensors external.safetensors
}
check 'memory of the caller' external

# ---- What is computed again is the same -------------------------------------------------------

tight() { # MODEL SOURCE OPTIONS...: the least budget against none
    emitted=$1
    source=$2
    shift 2
    least=$(least_budget "$source" "$@") || return 1
    emit "$emitted" "$source" "$@" && build "$emitted" trainer free -O0 &&
        ./free 3 free.safetensors && emit "$emitted" "$source" "$@" --budget "$least" &&
        build "$emitted" trainer tight -O0 -DGPLAN_POISON && ./tight 3 tight.safetensors &&
        cmp free.safetensors tight.safetensors
}
check 'the least memory for resume' tight resume "$here/resume.g"
check 'the least memory for resnet' tight resnet "$here/resnet.g"
check 'the least memory for gpt2' tight gpt2 "$examples/gpt2.g" -D B=4 -D T=16 -D C=16 -D L=3 \
    -D H=4 -D V=50 --accumulate 2

# ---- Memory -----------------------------------------------------------------------------------

memory() { # MODEL OPTIONS...
    emitted=$1
    shift
    emit "$emitted" "$examples/$emitted.g" "$@" && build "$emitted" memory memory -O1 && ./memory
}
check 'memory of mlp' memory mlp -D B=256 -D H=512
check 'memory of lenet' memory lenet -D B=128
check 'memory of gpt2' memory gpt2 -D B=4 -D T=64 -D C=128 -D L=3 -D H=4 -D V=1000 --accumulate 2

# ---- Tasks ------------------------------------------------------------------------------------

task() { # MODEL ARGUMENTS...
    emitted=$1
    shift
    emit "$emitted" "$here/$emitted.g" && build "$emitted" "$emitted" task -O3 -march=native &&
        timeout 900 ./task "$@"
}
check spirals task spirals
check characters task chars "$here/../../LICENSE"
coded_task() { # state of 8 bits learns as f32 does, within 2 %
    sed 's/adamw(/adamw(state = 8bit, /' "$here/chars.g" >coded_chars.g &&
        ./task "$here/../../LICENSE" >wide.txt && emit chars coded_chars.g &&
        build chars chars task -O3 -march=native &&
        timeout 900 ./task "$here/../../LICENSE" >narrow.txt &&
        cat wide.txt narrow.txt && awk '{ split($0, w, "-> "); loss[NR] = w[2] + 0 }
            END { exit !(loss[2] < 1.02 * loss[1] && loss[2] > 0.5 * loss[1]) }' wide.txt narrow.txt
}
check 'characters with state of 8 bits' coded_task

finish
