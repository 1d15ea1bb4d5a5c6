/* Output files appear whole or not at all: everything is written and flushed under temporary
 * names before the first rename. */
#include "codegen/codegen.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const Place NO_PLACE = {0};

static bool write_all(int file, Text text)
{
    size_t done = 0;
    while (done < text.length) {
        ssize_t n = write(file, text.text + done, text.length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool write_stdout(Diag *diag, Text text)
{
    if (fflush(stdout) == 0 && write_all(STDOUT_FILENO, text))
        return true;
    return diag_error(diag, NO_PLACE, "standard output: cannot be written: %s", strerror(errno));
}

/* Devices and pipes (/dev/stdout, /dev/null) cannot be renamed over: they are written at once. */
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static bool write_file(const char *path, int flags, Text text)
{
    int file = open(path, O_WRONLY | O_CREAT | flags, 0666);
    if (file < 0)
        return false;
    bool good = write_all(file, text) && (flags == 0 || fsync(file) == 0);
    int why = errno;
    if (close(file) != 0 && good)
        return false;
    errno = why;
    return good;
}

static const char *temporary(const char *path, char *name, size_t size)
{
    int length = snprintf(name, size, "%s.%ld.tmp", path, (long)getpid());
    return length > 0 && (size_t)length < size ? name : NULL;
}

static bool prepare(const OutFile *file)
{
    char name[4096];
    struct stat status;
    if (stat(file->path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (!temporary(file->path, name, sizeof name)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (write_file(name, O_TRUNC, file->text))
        return true;
    int why = errno;
    unlink(name);
    errno = why;
    return false;
}

static bool finish(const OutFile *file)
{
    char name[4096];
    if (!file->path)
        return true;
    if (is_special(file->path))
        return write_file(file->path, 0, file->text);
    return rename(temporary(file->path, name, sizeof name), file->path) == 0;
}

static void forget(const OutFile *file)
{
    char name[4096];
    if (file->path && !is_special(file->path) && temporary(file->path, name, sizeof name))
        unlink(name);
}

static bool fail(Diag *diag, const OutFile *file, size_t count, const OutFile *culprit)
{
    int why = errno;
    for (size_t i = 0; i < count; i++)
        forget(&file[i]);
    return diag_error(diag, NO_PLACE, "%s: cannot be written: %s", culprit->path, strerror(why));
}

bool files_write(Diag *diag, const OutFile *file, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (file[i].path && !is_special(file[i].path) && !prepare(&file[i]))
            return fail(diag, file, count, &file[i]);
    for (size_t i = 0; i < count; i++)
        if (!file[i].path && !write_stdout(diag, file[i].text)) {
            for (size_t k = 0; k < count; k++)
                forget(&file[k]);
            return false;
        }
    for (size_t i = 0; i < count; i++)
        if (!finish(&file[i]))
            return fail(diag, file, count, &file[i]);
    return true;
}
