/* What ranks that have files together ask each other: whether they see the same ones. */
#ifndef GP_FILE_MEET_H
#define GP_FILE_MEET_H

#include "file.h"

enum { GP_MEET_TEXT = 200 };

/* How they do. Both functions are called by all ranks, and return GP_ERANK where a rank is gone:
 * `share` gives the bytes of rank 0 to all; `agree` makes the first code that is not GP_OK that of
 * all, and its text, and waits as long as a rank that writes looks up. */
typedef struct {
    void *of;
    int rank;
    int (*share)(void *of, void *bytes, size_t count);
    int (*agree)(void *of, int code, char *text, size_t size);
} gp_meeting;

/* What rank 0 says of the file. */
typedef struct {
    int code;               /* GP_OK, or why it could not be made: text */
    uint64_t tensors, size; /* where they begin; of all of it */
    char made[GP_PATH], text[GP_MEET_TEXT];
} gp_shared_file;

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

GP_HOST int gp_unseen(const gp_meeting *w, const char *path, gp_shared_file *f)
{
    snprintf(f->text, sizeof f->text,
             "%s: rank %d does not see the file that rank 0 writes (%s): ranks need one file "
             "system for what they save and load",
             gp_brief(path), w->rank, strerror(errno));
    return GP_EFILE;
}

/* Rank 0 makes an empty file beside this one, and removes it when the others have looked. */
GP_HOST int gp_check_shared(const gp_meeting *w, const char *path, char *detail, size_t size)
{
    gp_shared_file f;
    char name[GP_PATH];
    int file = -1, seen = -1;
    memset(&f, 0, sizeof f);
    if (w->rank == 0) {
        file = gp_resolve(path, name) ? gp_create_beside(name, f.made, 0666) : -1;
        if (file < 0) {
            f.code = GP_EFILE;
            snprintf(f.text, sizeof f.text, "%s: cannot be written: %s", gp_brief(path),
                     strerror(errno));
        }
    }
    int code = w->share(w->of, &f, sizeof f);
    if (code == GP_OK && f.code == GP_OK && w->rank > 0 && (seen = gp_open_shared(&f)) < 0)
        f.code = gp_unseen(w, path, &f);
    if (code == GP_OK)
        code = w->agree(w->of, f.code, f.text, sizeof f.text);
    if (seen >= 0)
        close(seen);
    if (file >= 0) {
        close(file);
        unlink(f.made);
    }
    if (code != GP_ERANK)
        snprintf(detail, size, "%s", code == GP_OK ? "" : f.text);
    return code;
}

#endif
