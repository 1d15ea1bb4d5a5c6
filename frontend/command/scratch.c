/* See scratch.h. */
#include "frontend/command/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The files of a folder, and the folder. */
static int remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    return rmdir(path);
}

/* The keeper: nothing but the end of gplan ends its wait, not a ctrl-C that is meant for gplan. A
 * compiler that outlives gplan may still be writing: then once more. */
static _Noreturn void keep(const char *path, int watched)
{
    enum { TRIES = 50 };
    char byte;
    setsid();
    static const int deaf[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP};
    for (size_t i = 0; i < sizeof deaf / sizeof *deaf; i++)
        signal(deaf[i], SIG_IGN);
    for (int i = 0; i <= STDERR_FILENO; i++) /* nobody waits for these because of it */
        close(i);
    while (read(watched, &byte, 1) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < TRIES && remove_folder(path) != 0 && errno != ENOENT; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    _exit(0);
}

Scratch scratch_make(Arena *arena)
{
    const char *root = getenv("TMPDIR");
    char *path = arena_printf(arena, "%s/gplan-XXXXXX", root && *root ? root : "/tmp");
    int ends[2];
    if (pipe(ends) != 0)
        return (Scratch){0};
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    if (!mkdtemp(path)) {
        int why = errno;
        close(ends[0]);
        close(ends[1]);
        errno = why;
        return (Scratch){0};
    }
    pid_t keeper = fork();
    if (keeper == 0) {
        close(ends[1]);
        keep(path, ends[0]);
    }
    close(ends[0]);
    Scratch scratch = {.path = path, .open = ends[1], .keeper = keeper};
    if (keeper < 0) {
        int why = errno;
        remove_folder(path);
        close(ends[1]);
        errno = why;
        scratch.path = NULL;
    }
    return scratch;
}

void scratch_remove(Scratch *scratch)
{
    if (!scratch->path)
        return;
    close(scratch->open);
    while (waitpid(scratch->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
    scratch->path = NULL;
}
