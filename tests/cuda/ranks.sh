# Ranks that NCCL connects, on the CPU: sourced by run.sh. Each rank is a process of its own, and
# tests/cuda_on_cpu stands for NCCL between them. The bits are those of one rank that runs as many
# micro-batches; and where no sum has an order of its own, those of C's --as-ranks.
# shellcheck shell=sh disable=SC2154
ranked() { # NAME MODEL OPTIONS...: the program NAME, for a device
    name=$1
    "$gplan" "$2" --prefix net --quiet -o "$name.cu" $(shift 2 && echo "$@") &&
        device_object "$name.cu" "$name.o" &&
        device_program "$name" "-DHEADER=\"$name.h\"" -I. "$here/ranked.cpp" "$name.o"
}
as_one() { # NAME MODEL OPTIONS...: in C
    name=$1
    "$gplan" "$2" --prefix net --quiet -o "$name.c" $(shift 2 && echo "$@") &&
        gcc -std=c11 -O1 -ffp-contract=off "-DHEADER=\"$name.h\"" -I. "$ranks/trainer.c" "$name.c" -lm -o "$name" &&
        "./$name" "$name.st" >"$name.out"
}
# In every way that streams and threads may run, and replayed.
always() { # NAME OTHER [ONLY]: the same losses, metrics, parameters and state; st: the last two
    for how in plain replay; do
        for order in 'ascending late' 'shuffled shuffled'; do
            CUDA_ON_CPU_ORDER=${order% *} CUDA_ON_CPU_STREAMS=${order#* } timeout 60 "./$1" now.st $how >now.out &&
                cmp now.st "$2.st" && { [ "${3-}" = st ] || cmp now.out "$2.out"; } || return 1
        done
    done
}
ends() { # MESSAGE RANKS ARGUMENTS...: so many ranks say so, and no file is written
    message=$1
    many=$2
    shift 2
    rm -f ended.st
    ! timeout 60 ./dense4 ended.st plain "$@" >ended 2>&1 && [ ! -e ended.st ] &&
        [ "$(grep -c -- "$message" ended)" -eq "$many" ]
}

nccl() {
    ranks=$root/tests/ranks
    four() {
        ranked "${1}4" "$ranks/$1.g" --ranks 4 && ranked "${1}one" "$ranks/$1.g" --accumulate 4 &&
            "./${1}one" "${1}one.st" >"${1}one.out" && always "${1}4" "${1}one"
    }
    check 'four ranks are four micro-batches' four dense
    check 'running statistics of four ranks' four norm
    exact() {
        as_one exact_c "$ranks/exact.g" --as-ranks 2 --accumulate 2 &&
            ranked exact_cu "$ranks/exact.g" --ranks 2 --accumulate 2 && always exact_cu exact_c st
    }
    check "two ranks of two micro-batches have C's bits" exact
    least() {
        ranked least "$ranks/dense.g" --ranks 4 --accumulate 1 --budget \
            "$("$gplan" "$ranks/dense.g" --ranks 4 --accumulate 1 --target cuda --min-budget)" &&
            always least denseone
    }
    check 'in the smallest arena' least
    resumed() {
        ./exact_c half.st steps=2 >half.out && ./exact_cu now.st replay load=half.st steps=2 &&
            cmp now.st exact_c.st
    }
    check 'begun by C on one rank' resumed
    plan() { "$gplan" "$ranks/dense.g" --ranks 4 --target cuda --emit json >ranks.json && "$gplan" verify ranks.json; }
    check 'a plan for ranks on GPUs' plan
    check 'a bad index on one rank' ends 'rank 2: index out of range: cross_entropy' 4 index=2
    check 'a rank that is cancelled' ends 'another rank failed: remote' 3 cancel=1
    told_nothing() { CUDA_ON_CPU_ABORT=silent ends 'does not answer for 1 s' 3 cancel=1 timeout=1; }
    check 'and nobody is told' told_nothing
    check 'a rank that is gone' ends 'on rank .: .*rank . failed\|does not answer for 1 s\|another rank failed' 3 quit=3 timeout=1
    check 'a rank at another step' ends 'rank 2 has another seed or step' 4 other=2
    check 'another number of ranks' ends 'for 4 ranks and on device 0, but the communicator has 5' 4 world=5
    refused() { # calls of CUDA, cuBLAS and NCCL on all ranks: all end, nobody waits for ever
        for number in 3 9 14 20 31 44 60 77 102 131; do
            ! CUDA_ON_CPU_FAIL=$number timeout 60 ./dense4 ended.st plain timeout=1 >ended 2>&1 &&
                [ "$(grep -c '^on rank' ended)" -eq 4 ] || return 1
        done
    }
    check 'calls that are refused' refused
}
