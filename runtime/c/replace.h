/* Atomic replacement of a file, for emitted programs and for gplan itself: written under a
 * temporary name beside it, then renamed. Nothing is allocated; errno is set on failure. */
#ifndef GP_REPLACE_H
#define GP_REPLACE_H

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { GP_PATH = 4096, GP_MAX_LINKS = 40, GP_MAX_NAMES = 100000 };

GP_HOST int gp_fail(int why)
{
    errno = why;
    return 0;
}

/* All of the bytes, or false. */
GP_HOST int gp_write_all(int file, const void *data, size_t bytes)
{
    const char *at = (const char *)data;
    while (bytes > 0) {
        ssize_t n = write(file, at, bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        at += n;
        bytes -= (size_t)n;
    }
    return 1;
}

/* Resolves the path: the target of a symlink, or itself. */
GP_HOST int gp_resolve(const char *path, char *name)
{
    if (strlen(path) >= GP_PATH)
        return gp_fail(ENAMETOOLONG);
    memcpy(name, path, strlen(path) + 1);
    for (int links = 0; links < GP_MAX_LINKS; links++) {
        char to[GP_PATH];
        const ssize_t length = readlink(name, to, sizeof to);
        if (length < 0)
            return 1; /* not a link, or does not exist */
        const char *slash = to[0] == '/' ? NULL : strrchr(name, '/');
        const size_t folder = slash ? (size_t)(slash - name) + 1 : 0;
        if (folder + (size_t)length >= GP_PATH)
            return gp_fail(ENAMETOOLONG);
        memcpy(name + folder, to, (size_t)length);
        name[folder + (size_t)length] = 0;
    }
    return gp_fail(ELOOP);
}

/* Temporary names beside a file, the first of which may be taken. */
GP_HOST int gp_name_beside(const char *name, unsigned i, char *made)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const int length = snprintf(made, GP_PATH, "%.*s%.200s.%ld.%u.tmp", (int)(base - name), name,
                                base, (long)getpid(), i);
    return (length > 0 && length < GP_PATH) || gp_fail(ENAMETOOLONG);
}

/* Creates a file beside another: -1 on failure. */
GP_HOST int gp_create_beside(const char *name, char *made, mode_t mode)
{
    for (unsigned i = 0; i < GP_MAX_NAMES; i++) {
        if (!gp_name_beside(name, i, made))
            return -1;
        const int file = open(made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/* Copies the mode of the file that is replaced. A file system without modes has nothing to
 * change. */
GP_HOST int gp_keep_mode(int file, const struct stat *old)
{
    struct stat now;
    return fstat(file, &now) == 0 && ((now.st_mode & 0777) == (old->st_mode & 0777) ||
                                      fchmod(file, old->st_mode & 0777) == 0);
}

/* Syncs the folder, so that the new name survives a crash right after the rename. The path is cut
 * to its folder. */
GP_HOST void gp_sync_folder(char *path)
{
    char *end = strrchr(path, '/');
    const char *folder = end == path ? "/" : end ? path : ".";
    if (end)
        *end = 0;
    const int file = open(folder, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
}

#endif
