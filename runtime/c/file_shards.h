/* Writes one file from several ranks, each of which has parts of some tensors: whole or not at all.
 *
 * Rank 0 makes the file under a temporary name, with its header and in its whole length, and the
 * others open it by that name: so all of them need one file system. Each writes what it has, rank 0
 * what all have. When all are done rank 0 renames it; where one fails, it is removed. */
#ifndef GP_FILE_SHARDS_H
#define GP_FILE_SHARDS_H

#include "file_save.h"
#include "ranks.h"

/* What rank 0 says of the file. */
typedef struct {
    int code;               /* GP_OK, or why it could not be made: text */
    uint64_t tensors, size; /* where they begin; of all of it */
    char made[GP_PATH], text[GP_RANKS_TEXT];
} gp_shared_file;

GP_HOST int gp_write_at(int file, const void *data, size_t bytes, uint64_t offset)
{
    return lseek(file, (off_t)offset, SEEK_SET) == (off_t)offset && gp_write_all(file, data, bytes);
}

/* What this rank has of a tensor that begins at `offset`. */
GP_HOST int gp_write_own(const gp_ranks *r, int file, const gp_item *t, uint64_t offset)
{
    const char *at = (const char *)t->data;
    int good = 1;
    if (t->rows == 0)
        return r->rank > 0 || gp_write_at(file, at, t->bytes, offset);
    for (size_t row = 0; row < t->rows && good && t->own > 0; row++)
        good = gp_write_at(file, at + row * t->stride, t->own,
                           offset + row * (t->bytes / t->rows) + t->before);
    return good;
}

/* Others may wait, and ask whether this rank is there: so it looks between two tensors. */
GP_HOST int gp_write_all_own(gp_ranks *r, int file, uint64_t offset, const gp_items *items)
{
    int good = 1;
    for (size_t i = 0; i < items->count && good; i++) {
        const gp_item t = items->item(items->model, i);
        good = gp_write_own(r, file, &t, offset);
        offset += t.bytes;
        gp_ranks_poll(r);
    }
    return good && fsync(file) == 0;
}

/* The file of rank 0, and its header; -1, with errno. */
GP_HOST int gp_make_shared(const char *name, const gp_items *items, gp_shared_file *f)
{
    struct stat old;
    const int known = stat(name, &old) == 0;
    if (known && !S_ISREG(old.st_mode)) {
        gp_fail(S_ISDIR(old.st_mode) ? EISDIR : EINVAL);
        return -1;
    }
    const int file = gp_create_beside(name, f->made, known ? old.st_mode & 0777 : 0666);
    if (file < 0)
        return -1;
    const int begun = (!known || gp_keep_mode(file, &old)) && gp_write_header(file, items);
    f->tensors = f->size = begun ? (uint64_t)lseek(file, 0, SEEK_CUR) : 0;
    for (size_t i = 0; i < items->count; i++)
        f->size += items->item(items->model, i).bytes;
    if (begun && ftruncate(file, (off_t)f->size) == 0)
        return file;
    const int why = errno;
    close(file);
    unlink(f->made);
    gp_fail(why);
    return -1;
}

/* That file, as another rank sees it; -1, with errno. */
GP_HOST int gp_open_shared(const gp_shared_file *f)
{
    struct stat is;
    const int file = open(f->made, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || (fstat(file, &is) == 0 && (uint64_t)is.st_size == f->size))
        return file;
    close(file);
    gp_fail(ESTALE);
    return -1;
}

/* Writes this rank's part, and says what went wrong: the same on all ranks. */
GP_HOST int gp_write_shared(gp_ranks *r, const char *path, int file, const gp_items *items,
                            gp_shared_file *f)
{
    const char *brief = gp_brief(path);
    int code = GP_OK;
    if (r->rank > 0)
        file = gp_open_shared(f);
    if (file < 0) {
        snprintf(f->text, sizeof f->text,
                 "%s: rank %d does not see the file that rank 0 writes (%s): ranks that divide "
                 "state need one file system",
                 brief, r->rank, strerror(errno));
        code = GP_EFILE;
    } else if (!gp_write_all_own(r, file, f->tensors, items)) {
        snprintf(f->text, sizeof f->text, "%s: cannot be written by rank %d: %s", brief, r->rank,
                 strerror(errno));
        code = GP_EFILE;
    }
    if (file >= 0 && close(file) != 0 && code == GP_OK) {
        snprintf(f->text, sizeof f->text, "%s: cannot be written by rank %d: %s", brief, r->rank,
                 strerror(errno));
        code = GP_EFILE;
    }
    return gp_ranks_agree(r, code, f->text, sizeof f->text);
}

/* What rank 0 does at the end, where all have written. */
GP_HOST int gp_end_shared(const char *path, const char *name, gp_shared_file *f)
{
    if (rename(f->made, name) != 0) {
        snprintf(f->text, sizeof f->text, "%s: cannot be written: %s", gp_brief(path),
                 strerror(errno));
        unlink(f->made);
        return GP_EFILE;
    }
    gp_sync_folder(f->made);
    return GP_OK;
}

/* gp_save on all ranks together. */
GP_HOST int gp_save_shards(gp_ranks *r, const char *path, const gp_items *items)
{
    gp_shared_file f = {.code = GP_OK};
    char name[GP_PATH];
    int file = -1;
    if (r->rank == 0) {
        file = gp_resolve(path, name) ? gp_make_shared(name, items, &f) : -1;
        if (file < 0) {
            f.code = GP_EFILE;
            snprintf(f.text, sizeof f.text, "%s: cannot be written: %s", gp_brief(path),
                     strerror(errno));
        }
    }
    int code = gp_ranks_share(r, &f, sizeof f);
    if (code == GP_OK && f.code == GP_OK)
        code = f.code = gp_write_shared(r, path, file, items, &f);
    if (r->rank == 0 && file >= 0 && code != GP_OK)
        unlink(f.made);
    if (r->rank == 0 && file >= 0 && code == GP_OK)
        f.code = gp_end_shared(path, name, &f);
    if (code == GP_OK)
        code = gp_ranks_agree(r, f.code, f.text, sizeof f.text);
    GP_DETAIL(items, "%s", code == GP_OK ? "" : r->failed ? r->text : f.text);
    return code;
}

#endif
