#!/bin/sh
# Training on ranks that MPI connects, real ones: tests/ranks/run.sh path/to/gplan
# The same bits as one rank that does the work of all, with Open MPI and MPICH, through shared memory
# and TCP; and what becomes of all ranks when one is killed, stopped, cancelled, or wrong.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$work" || exit 1
strict='-std=c11 -Wall -Wextra -Wpedantic -Werror'
export ASAN_OPTIONS=detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1

# What starts ranks, and what builds them.
mpirun() { # MPI RANKS PROGRAM ARGUMENTS...
    mpi=$1
    ranks=$2
    program=./$3
    shift 3
    set -- -n "$ranks" "$program" "$@"
    case $mpi in
    openmpi) timeout 120 mpirun.openmpi --oversubscribe --bind-to none "$@" ;;
    tcp) timeout 120 mpirun.openmpi --oversubscribe --bind-to none --mca btl self,tcp "$@" ;;
    mpich) timeout 120 mpirun.mpich "$@" ;;
    esac
}
compiler() {
    case $1 in tcp) echo mpicc.openmpi ;; *) echo "mpicc.$1" ;; esac
}
has() {
    command -v "mpicc.$1" >/dev/null && command -v "mpirun.$1" >/dev/null
}
refuses() { # MESSAGE OPTIONS...
    message=$1
    shift
    ! "$gplan" "$@" --quiet >said 2>&1 && grep -qF -- "$message" said
}

# What waits for ranks leaves a core to what compiles: some checks run beside the others.
beside() { # NAME COMMAND...: its counts are taken by `meet`
    aside=$1
    shift
    (
        log=$work/$aside.log
        passed=0
        failed=0
        "$@"
        finish
    ) >"$work/$aside.said" 2>&1 &
}
meet() { # NAME...
    wait
    for aside; do
        sed '$d' "$work/$aside.said"
        # shellcheck disable=SC2046
        set -- $(tail -n 1 "$work/$aside.said")
        case $* in *' passed, '*' failed') ;; *) set -- 0 passed, 1 failed ;; esac
        passed=$((passed + $1))
        failed=$((failed + $3))
    done
}
whole_programs() {
    mkdir programs && cd programs || return
    # shellcheck source=tests/ranks/programs.sh
    . "$here/programs.sh"
}
beside programs whole_programs

# shellcheck disable=SC2086
check 'sums over ranks in one process, piece by piece' sh -c "gcc -O1 $strict -D_POSIX_C_SOURCE=200809L \
    -fsanitize=address,undefined -I'$root' -I'$root/build/gen' '$here/engine.c' -lm -o engine && ./engine"

# shellcheck disable=SC2086
check 'updates and norms of shards in one process' sh -c "gcc -O1 $strict -D_POSIX_C_SOURCE=200809L \
    -fsanitize=address,undefined -I'$root' -I'$root/build/gen' '$here/shards.c' -lm -o shards && ./shards"

optimize=-O0 # most programs run for a moment: what compiles quickly has the same bits
build() { # NAME CC MODEL OPTIONS...: the program NAME
    program=$1
    cc=$2
    source=$3
    shift 3
    # shellcheck disable=SC2086
    "$gplan" "$source" "$@" --prefix net --quiet -o "$program.c" &&
        "$cc" $strict $optimize -DHEADER="\"$program.h\"" -I. "$here/trainer.c" "$program.c" -lm -o "$program"
}
optimized() { # COMMAND...
    optimize=-O1
    "$@"
    status=$?
    optimize=-O0
    return $status
}
one() { # NAME MODEL OPTIONS...
    name=$1
    model=$2
    shift 2
    build "$name" gcc "$model" "$@" && "./$name" "$name.st" >"$name.out"
}
same() { # NAME OTHER: the same losses, metrics, parameters and state
    cmp "$1.out" "$2.out" && cmp "$1.st" "$2.st"
}
check 'one rank in micro-batches' one dense4 "$here/dense.g" --accumulate 4
check 'one rank as four' one dense4as "$here/dense.g" --as-ranks 4
check 'which is the same' same dense4 dense4as
check 'one rank as two, in micro-batches' one dense2as "$here/dense.g" --as-ranks 2 --accumulate 2
check 'tied parameters, as two' one tied2as "$here/tied.g" --as-ranks 2
check 'tied parameters in chunks and micro-batches, as two' one tied22as "$here/tied.g" --as-ranks 2 \
    --accumulate 2 --chunked-loss always

check '16 bits and groups, as two, in micro-batches' one narrow2as "$here/narrow.g" --as-ranks 2 --accumulate 2

check 'statistics of four micro-batches' one norm4 "$here/norm.g" --accumulate 4
check 'statistics of two ranks with two micro-batches' one norm2as "$here/norm.g" --as-ranks 2 --accumulate 2

sed 's/over = micro/over = rank/' "$here/norm.g" >rank.g
sed 's/over = micro/over = batch/' "$here/norm.g" >whole.g
gcc -O1 "$here/near.c" -o near -lm

plain() { "$gplan" "$here/dense.g" --as-ranks 2 --quiet -o plain.c && ! grep -q 'MPI\|mpi\.h' plain.c plain.h; }
check 'no MPI without --ranks' plain
hidden() { "$gplan" "$here/dense.g" --ranks 2 --quiet -o hidden.c && ! grep -q 'mpi\.h' hidden.h; }
check 'none in the header with it' hidden
check 'a batch that ranks do not divide' refuses 'the batch B = 16 is not a multiple of 3 ranks' \
    "$here/dense.g" --ranks 3
check 'ranks of inference' refuses 'the model has no train statement' "$here/dense.g" --infer --ranks 2
check 'statistics of all ranks over their micro-batches' refuses 'so a step cannot run in 4 micro-batches' \
    whole.g --ranks 2 --accumulate 2
check 'statistics of each rank over its micro-batches' refuses 'so a step cannot run in 4 micro-batches' \
    rank.g --ranks 2 --accumulate 2
check 'ranks of another target' refuses 'the target cuda has no program of one rank for all' "$here/dense.g" --as-ranks 2 \
    --target cuda
check 'shards of one rank' refuses 'nothing to divide without --ranks' "$here/dense.g" --shard state
wrong() { # MESSAGE LINE CHANGE: of the plan
    "$gplan" "$here/dense.g" --ranks 4 --shard gradients --emit json >plan.json &&
        "$gplan" verify plan.json && sed "/\"$2\"/s/$3/" plan.json >wrong.json && ! cmp -s plan.json wrong.json &&
        ! "$gplan" verify wrong.json >said 2>&1 && cat said && grep -qF "$1" said
}
check 'a plan that gathers other shards' wrong 'dense.1.w is updated by shards that nobody gathers' \
    dense.1.w.gather_begin '"part":8192/"part":4096'
check 'a plan that updates from a sum that was not sent' wrong 'reads more of a sum' \
    logits.w.reduce_begin '"settings":{},"defaults":{"part":0,"adds":1,"spreads":1}/"settings":{"part":4096,"spreads":0},"defaults":{"adds":1}'
gathers() { # a plan that asks ranks for more than it has, and its bytes on the wire
    "$gplan" whole.g --ranks 4 --emit json >plan.json && "$gplan" verify plan.json &&
        "$gplan" whole.g --ranks 4 --report | grep 'in 33 messages' || return 1
    last=$(grep -n '"name":"d.batchnorm.0/batchnorm_given/gather_ranks:1"' plan.json | cut -d: -f 1)
    sed "${last}s/\"previous\":[0-9]*/\"previous\":0/" plan.json >wrong.json && ! cmp -s plan.json wrong.json &&
        ! "$gplan" verify wrong.json >said 2>&1 && cat said
}
check 'a plan that gathers statistics' gathers
check 'ranks twice' refuses 'either several ranks' "$here/dense.g" --ranks 2 --as-ranks 2

ranks() { # MPI RANKS NAME MODEL OPTIONS...: as one rank that does the work of all
    like=$3
    built=$1$2$3
    mpi=$1
    many=$2
    model=$4
    shift 4
    build "$built" "$(compiler "$mpi")" "$model" --ranks "$many" "$@" &&
        mpirun "$mpi" "$many" "$built" "$built.st" >"$built.out" && same "$built" "$like"
}
over_all() { # MPI RANKS: the numbers of one rank that has the whole batch, but for rounding
    mpi=$1
    many=$2
    build "over$mpi$many" "$(compiler "$mpi")" whole.g --ranks "$many" -D B=12 --threads 1 &&
        mpirun "$mpi" "$many" "over$mpi$many" over.st >over.out && ./near over.out whole12.out
}
check 'statistics of a whole batch' one whole12 whole.g -D B=12
as_one() { # MPI: the bits of one rank that does the work of all
    check "$1: four ranks are four micro-batches" optimized ranks "$1" 4 dense4 "$here/dense.g"
    check "$1: two ranks of two micro-batches, gradients sharded" ranks "$1" 2 dense2as "$here/dense.g" \
        --accumulate 2 --shard gradients
    check "$1: tied parameters, state sharded" ranks "$1" 2 tied2as "$here/tied.g" --shard state
    check "$1: running statistics of four ranks" optimized ranks "$1" 4 norm4 "$here/norm.g"
    check "$1: tied parameters in chunks and micro-batches" ranks "$1" 2 tied22as "$here/tied.g" \
        --accumulate 2 --chunked-loss always --shard none
    check "$1: 16 bits and groups in micro-batches, state sharded" ranks "$1" 2 narrow2as "$here/narrow.g" \
        --accumulate 2 --shard state
}
has mpich && beside mpich as_one mpich
if has openmpi; then
    as_one openmpi
    check 'openmpi: running statistics of two ranks with two micro-batches' \
        ranks openmpi 2 norm2as "$here/norm.g" --accumulate 2
    check 'openmpi, over TCP, gradients sharded' ranks tcp 2 tied2as "$here/tied.g" --shard gradients
    cp openmpi2dense2as gradients2
    check 'openmpi: micro-batches, state sharded' ranks openmpi 2 dense2as "$here/dense.g" --accumulate 2 --shard state
    check 'openmpi: 16 bits and groups in micro-batches, gradients sharded' \
        ranks openmpi 2 narrow2as "$here/narrow.g" --accumulate 2 --shard gradients
    check 'openmpi: statistics of each of four ranks' ranks openmpi 4 norm4 rank.g
    check 'openmpi: statistics of four ranks together' over_all openmpi 4
    check 'openmpi, over TCP: of three' over_all tcp 3
    least() {
        set -- "$here/dense.g" --ranks 4 --effort 20
        ranks openmpi 4 dense4 "$@" --budget "$(least_budget "$@")"
    }
    check 'in the smallest arena' least
    # shellcheck disable=SC2086
    link() { # the program that --calibrate writes prints a profile, with what it measured
        "$gplan" --calibrate -o link.c && mpicc.openmpi $strict -O1 link.c -lm -o link &&
            mpirun openmpi 2 link 0.01 >cluster.json && [ "$(grep -c link_ cluster.json)" -eq 3 ] &&
            "$gplan" "$here/dense.g" --ranks 2 --profile cluster.json --report | grep '^  communication'
    }
    check 'the link between ranks is measured' link

    # A file of one rank goes on with another number of them, and with shards; and the other way.
    sharded() {
        set -- "$here/dense.g" --ranks 4 --threads 1 --accumulate 2 --programs step,eval
        "$gplan" "$@" --quiet --report --budget "$(least_budget "$@")" | grep 'sharded  *gradients'
    }
    check 'the smallest budget shards gradients' sharded
    resume() {
        ./dense4as half.st steps=2 >resumed.out && mpirun openmpi 4 openmpi4dense4 resumed.st load=half.st \
            steps=2 >>resumed.out && cmp resumed.out dense4.out && cmp resumed.st dense4.st &&
            mpirun openmpi 4 openmpi4dense4 half.st steps=2 >resumed.out &&
            ./dense4as resumed.st load=half.st steps=2 >>resumed.out && cmp resumed.out dense4.out &&
            cmp resumed.st dense4.st
    }
    check 'a run goes on with more ranks' resume

    # Faults: all ranks end, and say why.
    ends() { # MESSAGE ARGUMENTS...
        message=$1
        shift
        rm -f ended.st
        ! mpirun openmpi 4 openmpi4dense4 ended.st "$@" >ended 2>&1 && cat ended && [ ! -e ended.st ] &&
            grep -q "$message" ended
    }
    check 'a bad index on one rank' ends 'rank 2: step: index out of range' index=2
    check 'a rank that stops for good' ends 'rank 1 does not answer for 3 s' stop=1 timeout=2
    check 'a rank that is killed' ends 'signal 9' kill=3
    check 'a rank that is cancelled' ends 'rank 1: step: stopped by the progress function' cancel=1
    unsaved() { # MESSAGE ARGUMENT: the file that was there stays
        cp dense4.st ended.st
        ! mpirun openmpi 4 openmpi4dense4 ended.st "$2" >ended 2>&1 && cat ended && grep -q "$1" ended &&
            cmp ended.st dense4.st && [ -z "$(find . -name 'ended.st.*.tmp')" ]
    }
    check 'a rank that cannot write its part' unsaved 'cannot be written by rank 2: File too large' full=2
    check 'a rank that sees other files' unsaved 'rank 3 does not see the file that rank 0 writes' away=3
    check 'which can be asked before' ends 'rank [0-3]: files: .*: rank 3 does not see the file' away=3 files=1
    gcc -shared -fPIC "$here/slow.c" -o slow.so -ldl
    slow() { # 0.1 s a write, so for longer than 2 s, whole and in shards
        for rank in 0 1; do
            LD_PRELOAD=$work/slow.so SLOW_RANK=$rank mpirun openmpi 4 openmpi4dense4 slow.st timeout=1 >slow.out &&
                cmp slow.st dense4.st || return 1
        done
        LD_PRELOAD=$work/slow.so SLOW_RANK=0 mpirun openmpi 4 openmpi4norm4 slow.st timeout=1 >slow.out &&
            cmp slow.st norm4.st
    }
    check 'a rank that writes for longer than it may be silent' slow
    others() {
        ! timeout 120 mpirun.openmpi --oversubscribe -n 2 ./openmpi4dense4 ended.st >ended 2>&1 && cat ended &&
            grep -q 'the program is for 4 ranks, but the communicator has 2' ended
    }
    check 'another number of ranks' others
    differ() { # the same model, with other shards
        ! timeout 120 mpirun.openmpi --oversubscribe -n 1 ./openmpi2dense2as a.st : -n 1 ./gradients2 b.st >ended 2>&1 &&
            cat ended && grep -q 'rank 1 has another program than rank 0' ended
    }
    check 'different programs' differ
fi
if has mpich; then meet programs mpich; else meet programs; fi
finish
