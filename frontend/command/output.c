/* See output.h. Nothing is allocated between the first file that is made and the last that is
 * removed, so that nothing is left where memory runs out. */
#include "frontend/command/output.h"

#include "runtime/c/replace.h"

/* A file on its way. */
typedef struct {
    char name[GP_PATH]; /* what the path leads to */
    char made[GP_PATH]; /* the new one; "": none, or it has replaced the old one */
    char kept[GP_PATH]; /* the old one under another name, until all are in place; "": none */
    mode_t mode;
    bool known;   /* there is an old one */
    bool special; /* it is no regular file */
    bool placed;  /* the new one has its place */
} Slot;

static bool find(Slot *slot, const char *path)
{
    struct stat old;
    slot->made[0] = slot->kept[0] = 0;
    slot->placed = false;
    if (!gp_resolve(path, slot->name))
        return false;
    slot->known = stat(slot->name, &old) == 0;
    slot->mode = slot->known ? old.st_mode : 0666;
    slot->special = slot->known && !S_ISREG(old.st_mode);
    return !slot->known || !S_ISDIR(old.st_mode) || gp_fail(EISDIR);
}

/* An open file to be filled: the new one, or what is no regular file. -1: errno says why. */
static int begin(Slot *slot)
{
    if (slot->special)
        return open(slot->name, O_WRONLY | O_CLOEXEC);
    int file = gp_create_beside(slot->name, slot->made, slot->mode & 0777);
    if (file < 0) {
        slot->made[0] = 0;
        return -1;
    }
    if (!slot->known || gp_keep_mode(file, &(struct stat){.st_mode = slot->mode}))
        return file;
    int why = errno;
    close(file);
    return gp_fail(why) - 1;
}

/* Closes a file that was filled, or was not. */
static bool end(const Slot *slot, int file, bool good)
{
    good = good && (slot->special || fsync(file) == 0);
    int why = errno;
    if (close(file) == 0)
        errno = why;
    else
        good = false;
    return good;
}

static bool fill(Slot *slot, const OutFile *from)
{
    int file = begin(slot);
    return file >= 0 && end(slot, file,
                            from->stream ? from->stream(file, from->what)
                                         : gp_write_all(file, from->text.text, from->text.length));
}

/* Another name for the old file: a link, or where the file system has none it moves there. */
static bool keep(Slot *slot)
{
    for (unsigned i = 0; i < GP_MAX_NAMES && gp_name_beside(slot->name, i, slot->kept); i++)
        if (link(slot->name, slot->kept) == 0)
            return true;
        else if (errno != EEXIST)
            break;
    int file = gp_create_beside(slot->name, slot->kept, 0600);
    if (file >= 0 && close(file) == 0 && rename(slot->name, slot->kept) == 0)
        return true;
    int why = errno;
    if (file >= 0)
        unlink(slot->kept);
    slot->kept[0] = 0;
    return gp_fail(why);
}

static bool place(Slot *slot, bool last)
{
    if (slot->special)
        return true;
    if (slot->known && !last && !keep(slot))
        return false;
    slot->placed = rename(slot->made, slot->name) == 0;
    return slot->placed;
}

/* As it was before; keeps errno. */
static void undo(Slot *slot)
{
    int why = errno;
    if (slot->made[0] && !slot->placed)
        unlink(slot->made);
    if (slot->kept[0])
        rename(slot->kept, slot->name);
    else if (slot->placed)
        unlink(slot->name);
    if (slot->kept[0])
        unlink(slot->kept); /* where it was the same file, the rename did nothing */
    errno = why;
}

/* The new ones stay. */
static void finish(Slot *slot)
{
    if (slot->kept[0])
        unlink(slot->kept);
    if (slot->placed)
        gp_sync_folder(slot->made);
}

static bool write_stdout(Text text)
{
    return fflush(stdout) == 0 && gp_write_all(STDOUT_FILENO, text.text, text.length);
}

const OutFile *files_write(const OutFile *file, size_t count)
{
    Slot slot[MAX_OUT_FILES];
    size_t found = 0;
    const OutFile *culprit = NULL;
    for (; found < count && !culprit; found++)
        if (file[found].path && (!find(&slot[found], file[found].path) ||
                                 (!slot[found].special && !fill(&slot[found], &file[found]))))
            culprit = &file[found];
    for (size_t i = 0; i < count && !culprit; i++)
        if (!file[i].path ? !write_stdout(file[i].text)
                          : slot[i].special && !fill(&slot[i], &file[i]))
            culprit = &file[i];
    for (size_t i = 0; i < count && !culprit; i++)
        if (file[i].path && !place(&slot[i], i + 1 == count))
            culprit = &file[i];
    for (size_t i = 0; i < found; i++)
        if (file[i].path && culprit)
            undo(&slot[i]);
        else if (file[i].path)
            finish(&slot[i]);
    return culprit;
}

bool file_write(const char *path, void (*write)(FILE *to, const void *what), const void *what)
{
    Slot slot;
    if (!find(&slot, path))
        return false;
    int file = begin(&slot), copy = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;
    FILE *to = copy >= 0 ? fdopen(copy, "w") : NULL;
    bool good = to != NULL;
    if (!to && copy >= 0) {
        int why = errno;
        close(copy);
        errno = why;
    }
    if (to) {
        write(to, what);
        good = !ferror(to);
        good &= fclose(to) == 0;
    }
    if (file >= 0)
        good = end(&slot, file, good);
    if (good && place(&slot, true))
        finish(&slot);
    else
        undo(&slot);
    return good && (slot.special || slot.placed);
}
