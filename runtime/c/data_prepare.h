/* Files that are made once from what the user has, so that samples can be read by their number:
 * unpacked arrays, parsed tables, lists of names. They stand beside the original or, where that
 * cannot be written, in the user's cache folder. The memory is that of workers which do not run
 * yet. */
#ifndef GP_DATA_PREPARE_H
#define GP_DATA_PREPARE_H

#include "data_state.h"
#include "file_load.h"

#include <stdlib.h>

/* ---- Writing -------------------------------------------------------------------------------- */

enum { GP_WRITER = 16384 };

typedef struct {
    int file, failed;
    size_t used;
    uint64_t written; /* also what is in the buffer */
    unsigned char buffer[GP_WRITER];
} gp_writer;

GP_HOST_FAST void gp_writer_flush(gp_writer *w)
{
    if (!w->failed && !gp_write_all(w->file, w->buffer, w->used))
        w->failed = 1;
    w->used = 0;
}

GP_HOST_FAST void gp_writer_put(gp_writer *w, const void *data, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)data;
    w->written += bytes;
    while (bytes > 0) {
        const size_t room = GP_WRITER - w->used, n = bytes < room ? bytes : room;
        memcpy(w->buffer + w->used, at, n);
        w->used += n;
        at += n;
        bytes -= n;
        if (w->used == GP_WRITER)
            gp_writer_flush(w);
    }
}

/* ---- Where they stand ----------------------------------------------------------------------- */

/* ~/.cache/gplan, made where it is not there. */
GP_HOST int gp_cache_folder(char *path)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const int own = cache && cache[0] == '/';
    if (!own && !(home && home[0] == '/'))
        return 0;
    int length =
        snprintf(path, GP_DATA_PATH - 300, "%s%s", own ? cache : home, own ? "" : "/.cache");
    if (length >= GP_DATA_PATH - 300)
        return 0;
    (void)mkdir(path, 0700);
    snprintf(path + length, 16, "/gplan");
    (void)mkdir(path, 0700);
    return 1;
}

/* A name for the file beside the original (0) or in the cache folder (1), where it has the stamp of
 * the original in it. */
GP_HOST int gp_prepared_name(const char *beside, uint64_t stamp, int where, char *path)
{
    char whole[GP_PATH];
    if (where == 0)
        return snprintf(path, GP_DATA_PATH, "%s", beside) < GP_DATA_PATH;
    if (!gp_cache_folder(path))
        return 0;
    whole[0] = 0;
    if (beside[0] != '/' && !getcwd(whole, sizeof whole))
        return 0;
    const char *slash = strrchr(beside, '/');
    uint64_t hash = gp_hash_bytes(GP_HASH_START ^ stamp, whole, strlen(whole) + 1);
    hash = gp_hash_bytes(hash, beside, strlen(beside));
    const size_t length = strlen(path);
    snprintf(path + length, GP_DATA_PATH - length, "/%016llx-%.200s", (unsigned long long)hash,
             slash ? slash + 1 : beside);
    return 1;
}

/* How a file was when it was read: its size and time. */
GP_HOST uint64_t gp_stamp_of(const struct stat *info, uint64_t before)
{
    const int64_t facts[3] = {(int64_t)info->st_size, (int64_t)info->st_mtim.tv_sec,
                              (int64_t)info->st_mtim.tv_nsec};
    return gp_hash_bytes(before, facts, sizeof facts);
}

/* ---- Making them ---------------------------------------------------------------------------- */

typedef struct gp_preparation {
    const char *original; /* for messages */
    const char *beside;   /* the name that it has beside the original */
    uint64_t stamp;       /* of the original */
    /* Whether a file that is there is the one that would be made. */
    int (*is_current)(const struct gp_preparation *p, int file);
    /* Writes it. Returns GP_OK, or GP_EDATA with a text where the original is at fault. */
    int (*make)(gp_data *d, const struct gp_preparation *p, gp_writer *to);
    const void *context;
} gp_preparation;

/* Memory for making one, after the writer's. A typedef of an array with this size compiles where
 * a struct has room in it. */
#define GP_PREPARED_FITS(type) (sizeof(type) + sizeof(gp_writer) <= GP_DATA_PREPARE ? 1 : -1)

GP_HOST unsigned char *gp_prepare_memory(gp_data *d, size_t *bytes)
{
    const size_t used = sizeof(gp_writer) + GP_DATA_STATE;
    *bytes = GP_DATA_STATE + GP_DATA_PREPARE - used;
    return (unsigned char *)d->start.work + used;
}

/* A file at this path that is current; -1: there is none. */
GP_HOST int gp_prepared_open(const gp_preparation *p, const char *path)
{
    struct stat info;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const int is_file = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    if (file >= 0 && !(is_file && p->is_current(p, file))) {
        close(file);
        return -1;
    }
    return file;
}

/* Makes it at this path. *file is -1 where nothing can be written there. */
GP_HOST int gp_prepared_make(gp_data *d, const gp_preparation *p, const char *path, int *file)
{
    char made[GP_PATH];
    gp_writer *w = (gp_writer *)((unsigned char *)d->start.work + GP_DATA_STATE);
    memset(w, 0, sizeof *w);
    *file = -1;
    w->file = gp_create_beside(path, made, 0666);
    if (w->file < 0)
        return GP_OK;
    const int code = p->make(d, p, w);
    gp_writer_flush(w);
    const int why = errno;
    const int failed = (close(w->file) != 0) | w->failed;
    if (code != GP_OK || failed || rename(made, path) != 0) {
        unlink(made);
        errno = why;
        return code;
    }
    *file = open(path, O_RDONLY | O_CLOEXEC);
    return GP_OK;
}

/* Opens the prepared file, and makes it first where it is not there or the original changed. */
GP_HOST int gp_prepare(gp_data *d, const gp_preparation *p, int *file)
{
    char path[GP_DATA_PATH];
    for (int where = 0; where < 2; where++)
        if (gp_prepared_name(p->beside, p->stamp, where, path) &&
            (*file = gp_prepared_open(p, path)) >= 0)
            return GP_OK;
    for (int where = 0; where < 2; where++)
        if (gp_prepared_name(p->beside, p->stamp, where, path)) {
            const int code = gp_prepared_make(d, p, path, file);
            if (code != GP_OK || *file >= 0)
                return code;
        }
    return gp_data_fail(d->text,
                        "%s: must be prepared once, but neither its folder nor the cache folder "
                        "(XDG_CACHE_HOME) can be written: %s",
                        gp_data_brief(p->original), strerror(errno));
}

#endif
