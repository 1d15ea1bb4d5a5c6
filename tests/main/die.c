/* A disk at its worst, for LD_PRELOAD: the process is killed within a save, before or after the
 * file is on the disk. DIE_AT=N: at the Nth call; DIE_IN: fsync or rename, and then before or
 * after. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void maybe_die(const char *where)
{
    static int calls;
    const char *wanted = getenv("DIE_IN"), *at = getenv("DIE_AT");
    if (wanted && at && strcmp(wanted, where) == 0 && ++calls == atoi(at))
        kill(getpid(), SIGKILL);
}

int fsync(int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    maybe_die("fsync");
    return real(file);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    maybe_die("rename");
    int status = real(from, to);
    maybe_die("renamed");
    return status;
}
