/* Writes one file from several ranks, each of which has parts of some tensors: whole or not at all.
 *
 * Rank 0 makes the file under a temporary name, with its header and in its whole length, and the
 * others open it by that name: so all of them need one file system. Each writes what it has, rank 0
 * what all have. When all are done rank 0 renames it; where one fails, it is removed. */
#ifndef GP_FILE_SHARDS_H
#define GP_FILE_SHARDS_H

#include "file_meet.h"
#include "file_save.h"

/* So many bytes of a tensor, at a place in the file. */
GP_HOST int gp_write_at(int file, const gp_items *items, const gp_item *t, size_t from,
                        size_t bytes, uint64_t offset)
{
    return lseek(file, (off_t)offset, SEEK_SET) == (off_t)offset &&
           gp_write_pieces(file, items, t, from, bytes);
}

/* What this rank has of a tensor that begins at `offset`. */
GP_HOST int gp_write_own(const gp_meeting *w, int file, const gp_items *items, const gp_item *t,
                         uint64_t offset)
{
    int good = 1;
    if (t->rows == 0)
        return w->rank > 0 || gp_write_at(file, items, t, 0, t->bytes, offset);
    for (size_t row = 0; row < t->rows && good && t->own > 0; row++)
        good = gp_write_at(file, items, t, row * t->stride, t->own,
                           offset + row * (t->bytes / t->rows) + t->before);
    return good;
}

GP_HOST int gp_write_all_own(const gp_meeting *w, int file, uint64_t offset, const gp_items *items)
{
    int good = 1;
    for (size_t i = 0; i < items->count && good; i++) {
        const gp_item t = items->item(items->model, i);
        good = gp_write_own(w, file, items, &t, offset);
        offset += t.bytes;
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

/* Writes this rank's part, and says what went wrong: the same on all ranks. */
GP_HOST int gp_write_shared(const gp_meeting *w, const char *path, int file, const gp_items *items,
                            gp_shared_file *f)
{
    int code = GP_OK;
    if (w->rank > 0 && (file = gp_open_shared(f)) < 0)
        return w->agree(w->of, gp_unseen(w, path, f), f->text, sizeof f->text);
    int why = gp_write_all_own(w, file, f->tensors, items) ? 0 : errno;
    if (close(file) != 0 && !why)
        why = errno;
    if (why) {
        snprintf(f->text, sizeof f->text, "%s: cannot be written by rank %d: %s", gp_brief(path),
                 w->rank, strerror(why));
        code = GP_EFILE;
    }
    return w->agree(w->of, code, f->text, sizeof f->text);
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
GP_HOST int gp_save_shards(const gp_meeting *w, const char *path, const gp_items *items)
{
    gp_shared_file f;
    char name[GP_PATH];
    int file = -1;
    memset(&f, 0, sizeof f);
    if (w->rank == 0) {
        file = gp_resolve(path, name) ? gp_make_shared(name, items, &f) : -1;
        if (file < 0) {
            f.code = GP_EFILE;
            snprintf(f.text, sizeof f.text, "%s: cannot be written: %s", gp_brief(path),
                     strerror(errno));
        }
    }
    int code = w->share(w->of, &f, sizeof f);
    if (code == GP_OK && f.code == GP_OK)
        code = f.code = gp_write_shared(w, path, file, items, &f);
    if (w->rank == 0 && file >= 0 && code != GP_OK)
        unlink(f.made);
    if (w->rank == 0 && file >= 0 && code == GP_OK)
        f.code = gp_end_shared(path, name, &f);
    if (code == GP_OK)
        code = w->agree(w->of, f.code, f.text, sizeof f.text);
    if (code != GP_ERANK)
        GP_DETAIL(items, "%s", code == GP_OK ? "" : f.text);
    return code;
}

#endif
