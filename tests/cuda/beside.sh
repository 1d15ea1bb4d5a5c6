# Emitted CUDA beside the emitted C, whichever device runs it: sourced by run.sh, which has it run on
# the CPU, and by gpu.sh. Who sources it is a suite (see ../suite.sh), stands in an empty folder and
# has made
#
#   device_object SOURCE OBJECT FLAGS...   compiles an emitted .cu
#   device_program PROGRAM FLAGS...        compiles and links a program with such an object
#   orders                                 in which the device runs threads
#   tolerance                              of the largest number of a tensor; empty: each model's own
#   near                                   the program of near.cpp, in the folder
#
# and calls whole_models.
# shellcheck shell=sh disable=SC2154
examples=$root/examples
train=$root/tests/train
without= # names with this in them are not compared

# drive as PROGRAM for the model that was emitted as FOLDER/MODEL.c or .cu
build_c() { # MODEL FOLDER PROGRAM
    gcc -std=c11 -O1 -ffp-contract=off -c "$2/$1.c" -o c.o &&
        build host_program "$1" "$2" "$3" c.o
}

host_program() { # PROGRAM FLAGS...
    program=$1
    shift
    g++ -std=c++17 -O1 -Wall -Wextra -Werror "$@" -lm -o "$program"
}

build_cuda() { # MODEL FOLDER PROGRAM FLAGS...
    model=$1
    folder=$2
    program=$3
    shift 3
    device_object "$folder/$model.cu" cu.o "$@" &&
        build device_program "$model" "$folder" "$program" cu.o -DON_DEVICE "$@"
}

build() { # HOW MODEL FOLDER PROGRAM OBJECT FLAGS...
    how=$1
    model=$2
    folder=$3
    program=$4
    object=$5
    shift 5
    capitals=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    grep -q "int ${model}_step(" "$folder/$model.h" && set -- "$@" -DTRAINS
    grep -q "int ${model}_forward(" "$folder/$model.h" && set -- "$@" -DFORWARD
    "$how" "$program" "-DMODEL=$model" "-DARENA=${capitals}_ARENA_BYTES" \
        -include "$folder/$model.h" -I"$here" "${main:-$here/drive.cpp}" "$object" "$@"
}

# Both plans, both programs; then every way to run CUDA's gives the same bytes.
model() { # MODEL SOURCE TOLERANCE OPTIONS...
    model=$1
    source=$2
    near=${tolerance:-$3}
    shift 3
    mkdir -p c cuda
    # shellcheck disable=SC2086
    "$gplan" "$source" "$@" --quiet -o "c/$model.c" &&
        "$gplan" "$source" "$@" --quiet -o "cuda/$model.cu" &&
        build_c "$model" c on_c && ./on_c "c/$model.dump" 4 plain &&
        build_cuda "$model" cuda on_cuda && ./on_cuda "cuda/$model.dump" 4 plain &&
        ./near "$near" "c/$model.dump" "cuda/$model.dump" $without
}

# The program of the last model in other ways.
same() { # MODEL HOW ORDER [STREAMS]
    CUDA_ON_CPU_ORDER=$3 CUDA_ON_CPU_STREAMS=${4:-late} ./on_cuda other.dump 4 "$2" &&
        cmp "cuda/$1.dump" other.dump
}

# Steps that nobody waits for: all but the losses.
silent() { # MODEL
    ./on_cuda silent.dump 4 silent && grep -v '^loss ' "cuda/$1.dump" | cmp - silent.dump
}

# Begun by one program, ended by the other.
handed_over() {
    ./on_c saved.dump 4 saved && mv middle.safetensors half.safetensors &&
        ./on_cuda other.dump 4 from half.safetensors && ./near "$near" saved.dump other.dump $without &&
        ./on_cuda saved.dump 4 saved && mv middle.safetensors half.safetensors &&
        ./on_c other.dump 4 from half.safetensors && ./near "$near" saved.dump other.dump $without
}

ways() { # MODEL
    for order in $orders; do
        [ "$order" = shuffled ] && streams=shuffled || streams=late
        check "$1 in $order order" same "$1" plain "$order" "$streams"
    done
    check "$1 in memory of its own" same "$1" created ascending
    if grep -q "int $1_step(" "cuda/$1.h"; then
        check "$1 replayed" same "$1" replay ascending
        check "$1 replayed, shuffled" same "$1" replay shuffled shuffled
        check "$1 without waiting" silent "$1"
        check "$1 saved and loaded" same "$1" saved ascending
        check "$1 begun by C, and the other way" handed_over
    fi
}

# Under the smallest budget there is, with all checks compiled in: the same bytes.
budget() { # MODEL SOURCE OPTIONS...
    model=$1
    source=$2
    shift 2
    mkdir -p tight
    set -- "$@" --accumulate 1 --chunked-loss never # those round in another way
    least=$("$gplan" "$source" "$@" --target cuda --quiet --min-budget) &&
        "$gplan" "$source" "$@" --quiet --budget "$least" -o "tight/$model.cu" &&
        grep -q "_ARENA_BYTES ${least}ull" "tight/$model.h" &&
        build_cuda "$model" tight on_less -DGPLAN_POISON -DGPLAN_CHECK_NAN -DGPLAN_PROFILE &&
        ./on_less tight.dump 4 plain && cmp "cuda/$model.dump" tight.dump &&
        ./on_less tight.dump 4 replay && cmp "cuda/$model.dump" tight.dump
}

# Loops over elements have C's bits, whatever becomes of sums.
loops() { grep '^chain ' c/each.dump >chain && grep '^chain ' cuda/each.dump | cmp - chain; }

# All four steps were skipped: the scale is 65536 / 16, and both have the parameters they began with.
overflowed() {
    for dump in c/scaled.dump cuda/scaled.dump; do
        [ "$(grep train.loss_scale $dump | tail -n 3 | tr -d a-z_. | tr '\n' ' ')" = ' 4096  0  4 ' ] ||
            return 1
    done
    cmp c/scaled.dump.safetensors cuda/scaled.dump.safetensors
}

whole_models() {
    check each model each "$here/each.g" 1e-6
    ways each
    check 'each: loops bit for bit' loops
    check 'each: the same file' cmp c/each.dump.safetensors cuda/each.dump.safetensors
    check 'betas' model betas "$here/betas.g" 1e-6
    check 'betas replayed' same betas replay ascending
    check 'stored dtypes' model stored "$here/stored.g" 0
    check 'stored dtypes: the same file' cmp c/stored.dump.safetensors cuda/stored.dump.safetensors
    check 'mlp' model mlp "$examples/mlp.g" 1e-4 -D B=4 -D H=19
    ways mlp
    check 'lenet' model lenet "$examples/lenet.g" 1e-4 -D B=2
    ways lenet
    check 'lenet within a budget' budget lenet "$examples/lenet.g" -D B=2
    # The gradient of a bias of keys is 0 but for rounding, of which adam makes a whole step.
    without=.bk
    gpt2='-D B=4 -D T=7 -D C=12 -D L=3 -D H=3 -D V=13'
    # shellcheck disable=SC2086
    {
        check 'gpt2' model gpt2 "$examples/gpt2.g" 1e-4 $gpt2
        ways gpt2
        check 'gpt2 within a budget' budget gpt2 "$examples/gpt2.g" $gpt2
        check 'gpt2 in chunks' model gpt2 "$examples/gpt2.g" 1e-4 $gpt2 --chunked-loss always
        ways gpt2
        check 'gpt2 in micro-batches' model gpt2 "$examples/gpt2.g" 1e-4 $gpt2 --accumulate 2
        ways gpt2
    }
    without=
    check 'batchnorm' model resnet "$train/resnet.g" 1e-4
    ways resnet
    sed 's/OPTIMIZER/adamw(lr = 0.01)/; s/LIMIT/clip/' "$train/scaled.g" >scaled.g
    sed 's/train cross/train 1e30 * cross/' scaled.g >overflows.g
    check 'f16 with a loss scale' model scaled scaled.g 1e-3 --accumulate 2
    ways scaled
    check 'steps that overflow' model scaled overflows.g 1e-5
    check 'and change nothing else' overflowed
    # shellcheck disable=SC2086
    check 'gpt2 of bf16' model gpt2 "$examples/gpt2.g" 1e-2 $gpt2 --precision bf16
    ways gpt2
    check 'convolutions and batchnorm of bf16' model resnet "$train/resnet.g" 1e-2 --precision bf16
    check 'lenet of f16' model lenet "$examples/lenet.g" 1e-2 -D B=2 --precision f16
    sed 's/using .*/using adamw(lr = 0.01, state = 8bit)/' "$examples/mlp.g" >coded.g
    check 'state of 8 bits' model mlp coded.g 1e-4 -D B=4 -D H=19
    check 'dropout' model dropout "$train/dropout.g" 1e-4 --accumulate 2
    ways dropout
}
