# shellcheck shell=sh disable=SC2154
# The program that --main writes, on ranks: the same run as one rank that does the work of all, the
# same order of samples for any number of them, and what ends one rank. For run.sh.
mkdir data part
# shellcheck disable=SC2086
whole_program() { # NAME CC OPTIONS...: around tests/main/tiny.g
    program=$1
    cc=$2
    shift 2
    "$gplan" "$root/tests/main/tiny.g" "$@" --prefix tiny --main --quiet -o "$program.c" &&
        "$cc" $strict -O0 -fopenmp -pthread "$program.c" "${program}_main.c" -lm -o "$program"
}
samples() {
    gcc -O1 "$root/tests/main/samples.c" -o samples && ./samples data/train-x data/train-y 400 1 &&
        ./samples data/eval-x data/eval-y 103 2 && ./samples part/train-x part/train-y 392 1 &&
        whole_program alone4 gcc --accumulate 4 && whole_program alone2 gcc --as-ranks 2 --accumulate 2
}
check 'programs of one rank' samples
same_run() { # NAME OTHER: file, what was said, and the log but for its times
    cmp "$1.st" "$2.st" && sed '/^done/d; s/ *[0-9]* samples.*//' "$1.said" >said &&
        sed '/^done/d; s/ *[0-9]* samples.*//' "$2.said" | cmp - said &&
        cut -d, -f 1-6 "$1.csv" >said && cut -d, -f 1-6 "$2.csv" | cmp - said
}
train() { # NAME WHAT-RUNS-IT... : 100 steps with two evaluations, 103 samples in batches of 8 each
    run=$1
    shift
    "$@" train --steps 100 --report 10 --log "$run.csv" --save "$run.st" >"$run.said" && cat "$run.said"
}
programs() { # MPI RANKS LIKE OPTIONS...
    mpi=$1
    many=$2
    like=$3
    shift 3
    whole_program "$mpi$many" "$(compiler "$mpi")" --ranks "$many" "$@" &&
        train "$mpi$many" mpirun "$mpi" "$many" "$mpi$many" && same_run "$mpi$many" "$like"
}
train alone4 ./alone4 >/dev/null && train alone2 ./alone2 >/dev/null

# A run goes on with another number of ranks: each step has the samples that it would have had.
order() { # FILE: by the loss of each step, where nothing is learned
    cut -d, -f 1,2,4 "$1.csv" | awk -F, '$2 == "train" { printf "%d %.5f\n", $1, $3 }' >"$1.order"
    [ "$(wc -l <"$1.order")" -eq 24 ]
}
others() {
    still='train --lr 1e-30 --report 1 --eval 1000'
    # shellcheck disable=SC2086
    ./alone4 $still --steps 24 --save all.st --log all.csv >/dev/null &&
        mpirun openmpi 2 openmpi2 $still --steps 10 --save moves.st --log moves.csv >/dev/null &&
        mpirun openmpi 4 openmpi4 $still --steps 17 --save moves.st --log moves.csv --resume >/dev/null &&
        ./alone2 $still --steps 24 --save moves.st --log moves.csv --resume >/dev/null &&
        order all && order moves && cmp all.order moves.order
}
bits() { # where each part of the run has the tree that one rank has
    ./alone2 train --steps 40 --save chain.st >/dev/null && ./alone4 train --steps 60 --save chain.st --resume >/dev/null &&
        mpirun openmpi 2 openmpi2 train --steps 40 --save moved.st >/dev/null &&
        mpirun openmpi 4 openmpi4 train --steps 60 --save moved.st --resume >/dev/null && cmp chain.st moved.st
}

# Whatever ends one rank ends all, with its name and the cause; the run goes on from its last file.
ends_with() { # MESSAGE COMMAND...
    message=$1
    shift
    ! "$@" >ended 2>&1 && cat ended && grep -q "$message" ended
}
pair() { # two ranks that are not told the same: ONE -- OTHER
    first=
    while [ "$1" != -- ]; do
        first="$first $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    timeout 120 mpirun.openmpi --oversubscribe --bind-to none -n 1 ./openmpi2 $first : -n 1 ./openmpi2 "$@"
}
goes_on() { # NAME: as if nothing had been
    mpirun openmpi 4 openmpi4 train --steps 100 --save "$1.st" --resume >/dev/null && cmp "$1.st" alone4.st &&
        [ -z "$(find . -name "$1.st.*.tmp")" ]
}
killed() {
    DIE_IN=rename DIE_AT=4 LD_PRELOAD="$PWD/die.so" ends_with 'rank 0 .*signal 9' \
        mpirun openmpi 4 openmpi4 train --steps 100 --every 10 --save k.st && [ -e k.st ] && goes_on k
}
stopped() { # one rank alone hears of it
    timeout 120 mpirun.openmpi --oversubscribe --bind-to none -n 1 ./openmpi4 train --steps 100 --every 5 --save s.st : \
        -n 1 sh -c 'echo $$ >second; exec ./openmpi4 train --steps 100 --every 5 --save s.st' : \
        -n 2 ./openmpi4 train --steps 100 --every 5 --save s.st >ended 2>&1 &
    ran=$!
    while [ ! -e s.st ] && kill -0 $ran; do sleep 0.01; done
    kill -INT "$(cat second)"
    wait $ran
    [ $? -eq 130 ] && cat ended && grep -q 'stopped after step' ended && goes_on s
}
more='train --steps 105 --save f.st --resume'
# shellcheck disable=SC2086
full() { # files of the rank that writes may have so many blocks
    cp alone4.st f.st && ends_with 'rank 0: f.st: cannot be written: File too large' timeout 120 mpirun.openmpi \
        --oversubscribe --bind-to none --mca btl self,tcp -n 1 sh -c "ulimit -f 4; exec ./openmpi4 $more" : \
        -n 3 ./openmpi4 $more && cmp f.st alone4.st
}
if has openmpi; then
    check 'openmpi: a run on four ranks, its log and its evaluations' programs openmpi 4 alone4
    check 'openmpi: a run on two ranks in micro-batches' programs openmpi 2 alone2 --accumulate 2
    check 'each step has its samples, on two ranks, four and one' others
    check 'a run on two ranks goes on with four: the same bits' bits
    gcc -shared -fPIC "$root/tests/main/die.c" -o die.so -ldl
    check 'a rank that is killed within a save' killed
    check 'ctrl-C of one rank stops all in order' stopped
    check 'a full disk' full
    mkdir elsewhere && cp -r data elsewhere
    apart() { # at once, and not when it is saved first
        ! timeout 120 mpirun.openmpi --oversubscribe --bind-to none -n 1 ./openmpi2 train --save a.st --steps 2 : \
            -n 1 sh -c 'cd elsewhere && exec ../openmpi2 train --save a.st --steps 2' >ended 2>&1 && cat ended &&
            grep -q 'a.st: rank 1 does not see the file that rank 0 writes' ended && ! grep -q 'loss' ended &&
            [ -z "$(find . -name 'a.st*')" ]
    }
    check 'ranks that see different folders' apart
    check 'a file that one rank does not find' ends_with 'rank 1: none/train-x: No such file' \
        pair train -- train --data none
    check 'other samples on one rank' ends_with 'rank 1 has another number of samples than rank 0' \
        pair train -- train --data part --eval-data data
    check 'an option that is none is told once' ends_with '^tiny: unknown option --epoch' \
        pair train --epoch 2 -- train --epoch 2
    check 'a log that cannot be' ends_with 'rank 0: none/log.csv' pair train --log none/log.csv -- train
    predicts() {
        mkdir data-eval && cp data/eval-* data-eval && ./alone2 predict --load alone2.st data-eval >predicted &&
            mpirun openmpi 2 openmpi2 predict --load alone2.st data-eval | cmp - predicted
    }
    whole_program alone2 gcc && check 'predictions' predicts
    runs() {
        CC=mpicc.openmpi CFLAGS=-O0 MPIRUN='mpirun.openmpi --oversubscribe' timeout 120 "$gplan" run \
            "$root/tests/main/tiny.g" --ranks 4 -- train --steps 100 --save r.st >output 2>&1 &&
            cat output && cmp r.st alone4.st
    }
    check 'in one command' runs
    CC=mpicc.none check 'which asks for a compiler' refuses 'Open MPI or MPICH' run "$root/tests/main/tiny.g" --ranks 2
fi
if has mpich; then
    check 'mpich: a run on four ranks, its log and its evaluations' programs mpich 4 alone4
fi
