# Ranks that NCCL connects, on the CPU: sourced by run.sh. Each rank is a process of its own, and
# tests/cuda_on_cpu stands for NCCL between them. The bits are those of one rank that runs as many
# micro-batches; and where no sum has an order of its own, those of C's --as-ranks.
# shellcheck shell=sh disable=SC2154
ranked() { # NAME MODEL OPTIONS...: the program NAME, for a device
    name=$1
    shift
    "$gplan" "$@" --prefix net --quiet -o "$name.cu" &&
        device_object "$name.cu" "$name.o" &&
        device_program "$name" "-DHEADER=\"$name.h\"" -I. "$here/ranked.cpp" "$name.o"
}
as_one() { # NAME MODEL OPTIONS...: in C
    name=$1
    shift
    "$gplan" "$@" --prefix net --quiet -o "$name.c" &&
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
    exact() { # a parameter that is whole on each rank, too
        as_one exact_c "$ranks/exact.g" --as-ranks 2 --accumulate 2 &&
            ranked exact_cu "$ranks/exact.g" --ranks 2 --accumulate 2 --shard state &&
            grep -q '^#define GP_SHARDS' exact_cu.cu && always exact_cu exact_c st
    }
    check "two ranks of two micro-batches have C's bits, state sharded" exact
    least() { # which shards all that it can
        set -- "$ranks/dense.g" --ranks 4 --accumulate 1
        "$gplan" "$@" --target cuda --min-budget >budget &&
            "$gplan" "$@" --target cuda --budget "$(cat budget)" --report | grep 'sharded  *state' &&
            ranked least "$@" --budget "$(cat budget)" && always least denseone
    }
    check 'in the smallest arena, state sharded' least
    narrow() {
        ranked narrowone "$ranks/narrow.g" --accumulate 2 && ./narrowone narrowone.st >narrowone.out &&
            ranked narrow2 "$ranks/narrow.g" --ranks 2 --shard gradients && always narrow2 narrowone
    }
    check '16 bits and groups, gradients sharded' narrow
    over_all() { # the numbers of one rank that has the whole batch, but for rounding
        sed 's/over = micro/over = batch/' "$ranks/norm.g" >whole.g
        gcc -O1 "$ranks/near.c" -o near_ranks -lm && ranked wholeone whole.g -D B=12 &&
            ./wholeone wholeone.st >wholeone.out && ranked whole4 whole.g --ranks 4 -D B=12 || return 1
        for how in plain replay; do
            CUDA_ON_CPU_STREAMS=late ./whole4 now.st $how >now.out && ./near_ranks now.out wholeone.out || return 1
        done
    }
    check 'statistics of four ranks together' over_all
    reads() { # NAME OPTIONS...: with data statements
        name=$1
        shift
        "$gplan" "$root/tests/main/tiny.g" --prefix net --quiet -o "$name.cu" "$@" &&
            device_object "$name.cu" "$name.o" &&
            device_program "$name" -DREADS "-DHEADER=\"$name.h\"" -I. "$here/ranked.cpp" "$name.o" -pthread
    }
    data() { # each rank its part of every batch; the last batch to evaluate on is not full
        mkdir data part && gcc -O1 "$root/tests/main/samples.c" -o samples &&
            ./samples data/train-x data/train-y 400 1 && ./samples data/eval-x data/eval-y 103 2 &&
            ./samples part/train-x part/train-y 392 1 && reads readone --accumulate 4 && reads read4 --ranks 4 &&
            ./readone readone.st plain steps=15 >readone.out || return 1
        for how in plain replay; do
            CUDA_ON_CPU_STREAMS=late ./read4 now.st $how steps=15 >now.out && cmp now.st readone.st &&
                cmp now.out readone.out || return 1
        done
        ! ./read4 now.st plain others=1 >ended 2>&1 &&
            grep -q 'rank 1 has another number of samples than rank 0' ended
    }
    check 'data of four ranks' data
    resumed() { # and goes on with shards
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
    slow() { # SECONDS that a rank must answer in; it writes for longer
        for name in dense4 least; do
            timeout 60 ./$name now.st plain slow=0 timeout=1 && cmp now.st denseone.st || return 1
        done
    }
    check 'a rank that writes for longer than it may be silent' slow
    away() { # what is there stays
        cp denseone.st kept.st
        ! timeout 60 ./least kept.st plain away=3 >ended 2>&1 && cmp kept.st denseone.st &&
            [ "$(grep -c 'rank 3 does not see the file that rank 0 writes' ended)" -eq 4 ] &&
            [ -z "$(find . -name 'kept.st.*.tmp')" ]
    }
    check 'a rank that sees other files' away
}
