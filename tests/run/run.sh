#!/bin/sh
# gplan run: a model and a C file become a program, and nothing else stays: run.sh path/to/gplan
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
cd "$work" || exit 1
mkdir tmp
export TMPDIR="$work/tmp" CC=gcc CFLAGS=-O1

cat >twice.g <<'END'
model twice(batch B = 1)
input x : f32[B]
output y = 2 * x
END
cat >main.c <<'END'
#include "twice.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static _Alignas(TWICE_ARENA_ALIGN) unsigned char arena[TWICE_ARENA_BYTES];
    twice m;
    char line[16] = "";
    if (twice_init(&m, arena, sizeof arena) != TWICE_OK)
        return 100;
    if (argc > 2 && strcmp(argv[1], "end") == 0)
        return atoi(argv[2]);
    if (argc > 1 && strcmp(argv[1], "die") == 0)
        raise(SIGKILL);
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        printf("%ld\n", (long)getpid());
        fflush(stdout);
        sleep(60);
    }
    if (argc > 1 && strcmp(argv[1], "count") == 0)
        return argc;
    twice_x(&m)[0] = strtof(argc > 1 ? argv[1] : fgets(line, sizeof line, stdin), NULL);
    twice_forward(&m);
    printf("%s: %g\n", argv[0], twice_y(&m)[0]);
    return 0;
}
END

# The temporary folder is empty; where gplan was killed, another process sees to that.
clean() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -z "$(ls tmp)" ] && return 0
        sleep 0.3
    done
    ls -R tmp
    return 1
}
says() { # STATUS PART ARGS...: as tests/cli has it
    status=$1
    part=$2
    shift 2
    timeout 60 "$gplan" run "$@" >output 2>&1 </dev/null
    got=$?
    cat output
    [ $got -eq "$status" ] && { [ -z "$part" ] || grep -qF -- "$part" output; } && clean
}
check 'a program runs with its arguments' says 0 'twice: 42' twice.g main.c -- 21
check 'an argument may look like an option' says 5 '' twice.g main.c -- count --budget 1 -k
check 'its exit status is that of gplan' says 77 '' twice.g main.c -- end 77
reads() { [ "$(echo 4 | "$gplan" run twice.g main.c)" = 'twice: 8' ]; }
check 'it reads the standard input' reads
sed 's/twice.h/model.h/' main.c >model_main.c
from_stdin() { [ "$("$gplan" run - model_main.c -- 3 <twice.g)" = 'model: 6' ]; }
check 'a model from the standard input' from_stdin
dies() {
    (exec "$gplan" run twice.g main.c -- die)
    [ $? -eq 137 ] && clean
}
check 'a signal that ends it ends gplan' dies
signalled() {
    "$gplan" run twice.g main.c -- wait >pid &
    ran=$!
    while [ ! -s pid ]; do sleep 0.1; done
    [ "$(cat pid)" = $ran ] && clean && kill -TERM $ran
    wait $ran
    [ $? -eq 143 ]
}
check 'a signal to gplan is one to the program' signalled
keeps() {
    [ "$("$gplan" run twice.g main.c -k kept -- 2)" = 'kept/twice: 4' ] && [ -f kept/twice.c ] &&
        [ -f kept/twice.h ] && [ "$(kept/twice 3)" = 'kept/twice: 6' ] &&
        [ "$(echo kept/*)" = 'kept/twice kept/twice.c kept/twice.h' ] && "$gplan" run twice.g main.c -k kept -- 2
}
check 'a folder keeps what was written' keeps

with() { # VARIABLE=VALUE STATUS PART ARGS...
    (
        export "${1?}"
        shift
        says "$@"
    )
}
check 'no compiler' with CC=none-such 1 'none-such: there is no such compiler' twice.g main.c
cat >plain <<'END'
#!/bin/sh
case "$*" in *-march* | *-fopenmp*) exit 1 ;; esac
exec gcc "$@"
END
chmod +x plain
fewer() {
    with CC="$work/plain -O1" 0 'does not take -fopenmp' twice.g main.c -- 1 && grep -q 'twice: 2' output
}
check 'a compiler that takes fewer flags' fewer
echo 'int main(void) { return no_such_thing; }' >wrong.c
check 'a C file that is wrong' says 1 'no_such_thing' twice.g wrong.c
check 'a model that is wrong' says 1 'no-such.g' no-such.g main.c
check 'a budget that is too small' says 1 'does not fit' twice.g main.c --budget 1
check 'an option that is not of run' says 2 'unknown option --max' twice.g main.c --max B
mkdir own && cp main.c own/twice.c
check 'the name of a file that is written' says 1 'rename one of them' twice.g own/twice.c -k own
check 'which was not lost' cmp main.c own/twice.c
: >file
check 'a folder that is none' says 1 'file' twice.g main.c -k file
check 'no temporary folder' with TMPDIR="$work/none" 1 'no temporary folder' twice.g main.c

# Ended from outside, while it compiles.
printf '#!/bin/sh\n: >compiling\nexec sleep 60\n' >slow
chmod +x slow
killed() { # SIGNAL
    rm -f compiling
    CC=$work/slow "$gplan" run twice.g main.c &
    ran=$!
    while [ ! -f compiling ]; do sleep 0.1; done
    [ -n "$(ls tmp)" ] && kill "-$1" $ran
    wait $ran
    clean
}
for signal in TERM HUP KILL; do
    check "nothing stays after SIG$signal" killed $signal
done
finish
