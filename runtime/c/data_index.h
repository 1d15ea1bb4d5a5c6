/* The images of a folder, a folder within it for each class: an index file that lists them in order
 * of their names, so that any can be found by its number and none is kept in memory.
 *
 * It is made again when one of the folders changed: their times are in it. A header, a table of
 * {offset, length, class}, the names, then folders with their times, and the names of classes. */
#ifndef GP_DATA_INDEX_H
#define GP_DATA_INDEX_H

#include "data_sort.h"

#include <dirent.h>
#include <strings.h>

enum { GP_INDEX_DEEP = 16 };
#define GP_INDEX_MAGIC UINT64_C(0x31786469706c6770) /* "gplpidx1" */

typedef struct {
    uint64_t magic, entries, classes;
    uint64_t table, names, folders, folders_end;
    uint64_t classes_end; /* from folders_end on */
} gp_index_header;

typedef struct {
    uint64_t offset;
    uint32_t length, label;
} gp_index_entry;

/* A scratch file that goes when it is closed: -1 on failure. */
GP_HOST int gp_index_scratch(const char *path)
{
    char made[GP_PATH];
    const int file = gp_create_beside(path, made, 0600);
    if (file < 0)
        return -1;
    close(file);
    const int again = open(made, O_RDWR | O_CLOEXEC);
    unlink(made);
    return again;
}

/* ---- Walking -------------------------------------------------------------------------------- */

typedef struct {
    gp_data *data;
    gp_writer folders, entries; /* scratch files */
    int listed;                 /* a scratch file: the names of classes */
    uint64_t listed_end, count, classes;
    gp_names class_name; /* which is being read */
    gp_sorter sorter;
    char path[GP_DATA_PATH]; /* the folder that is being read */
} gp_indexer;
typedef char gp_indexer_fits[GP_PREPARED_FITS(gp_indexer)];

GP_HOST int gp_index_is_image(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot &&
           (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
            strcasecmp(dot, ".png") == 0);
}

/* Remembers when the folder at x->path changed last; its name there begins at `root`. */
GP_HOST int gp_index_folder(gp_indexer *x, size_t root)
{
    struct stat info;
    char line[GP_DATA_PATH + 16];
    if (stat(x->path, &info) != 0)
        return gp_data_errno(x->data->text, x->path);
    const int64_t time[2] = {(int64_t)info.st_mtim.tv_sec, (int64_t)info.st_mtim.tv_nsec};
    const size_t length = strlen(x->path + root);
    memcpy(line, time, sizeof time);
    memcpy(line + sizeof time, x->path + root, length);
    gp_names_put(&x->folders, line, sizeof time + length);
    return GP_OK;
}

/* All images below x->path, or all folders in it. */
GP_HOST int gp_index_walk(gp_indexer *x, size_t root, int deep, int folders)
{
    const size_t length = strlen(x->path);
    DIR *folder = opendir(x->path);
    int code = folder ? gp_index_folder(x, root) : gp_data_errno(x->data->text, x->path);
    for (struct dirent *entry; code == GP_OK && (entry = readdir(folder));) {
        struct stat info;
        if (entry->d_name[0] == '.')
            continue;
        if (length + strlen(entry->d_name) + 2 > sizeof x->path || deep > GP_INDEX_DEEP) {
            code = gp_data_fail(x->data->text, "%s: folders are nested too deep",
                                gp_data_brief(x->path));
            break;
        }
        const int image = !folders && gp_index_is_image(entry->d_name);
        snprintf(x->path + length, sizeof x->path - length, "/%s", entry->d_name);
        const int is_folder = !image && stat(x->path, &info) == 0 && S_ISDIR(info.st_mode);
        if ((image || (folders && is_folder)) && !gp_sort_add(&x->sorter, x->path + root + 1))
            code = gp_data_errno(x->data->text, x->path);
        else if (!folders && is_folder)
            code = gp_index_walk(x, root, deep + 1, 0);
        x->path[length] = 0;
    }
    if (folder)
        closedir(folder);
    return code;
}

/* One class: its images in order. */
GP_HOST int gp_index_class(gp_indexer *x, uint32_t label)
{
    gp_data *d = x->data;
    uint64_t end = 0, count = 0;
    const size_t root = strlen(d->path);
    if (!gp_sort_begin(&x->sorter))
        return gp_data_errno(d->text, d->path);
    snprintf(x->path, sizeof x->path, "%.1000s/%.1000s", d->path, (const char *)x->class_name.name);
    const int code = gp_index_walk(x, root, 0, 0);
    if (code != GP_OK)
        return code;
    if (!gp_sort_end(&x->sorter, &end))
        return gp_data_errno(d->text, x->path);
    gp_names *n = &x->sorter.from[0];
    gp_names_begin(n, x->sorter.file[0], 0, end);
    for (; gp_names_next(n); count++) {
        gp_writer_put(&x->entries, &label, sizeof label);
        gp_names_put(&x->entries, n->name, n->length);
    }
    x->count += count;
    return count ? GP_OK
                 : gp_data_fail(d->text, "%s: the folder of a class has no JPEG or PNG files",
                                gp_data_brief(x->path));
}

/* The folders of classes, in order, in a file of their own. */
GP_HOST int gp_index_classes(gp_indexer *x)
{
    gp_data *d = x->data;
    if (!gp_sort_begin(&x->sorter))
        return gp_data_errno(d->text, d->path);
    snprintf(x->path, sizeof x->path, "%s", d->path);
    int code = gp_index_walk(x, strlen(d->path), 0, 1);
    if (code == GP_OK && !gp_sort_end(&x->sorter, &x->listed_end))
        code = gp_data_errno(d->text, d->path);
    if (code != GP_OK)
        return code;
    const int names = x->sorter.file[0]; /* stays as it is; the sorter goes on with another */
    x->sorter.file[0] = x->listed;
    x->listed = names;
    gp_names_begin(&x->class_name, names, 0, x->listed_end);
    for (; gp_names_next(&x->class_name); x->classes++) {
        code = gp_index_class(x, (uint32_t)x->classes);
        if (code != GP_OK)
            return code;
    }
    return x->classes
               ? GP_OK
               : gp_data_fail(d->text, "%s: has no folders within: one for each class is expected",
                              gp_data_brief(d->path));
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* Copies a scratch file. */
GP_HOST void gp_index_copy(gp_writer *to, gp_names *n, int file, uint64_t end)
{
    unsigned char byte[64];
    gp_names_begin(n, file, 0, end);
    for (uint64_t left = end; left > 0;) {
        const size_t some = left < sizeof byte ? (size_t)left : sizeof byte;
        if (!gp_names_bytes(n, byte, some))
            to->failed = 1;
        gp_writer_put(to, byte, some);
        left -= some;
    }
}

/* The table, then the names: the entries are read twice. */
GP_HOST void gp_index_write(gp_indexer *x, gp_writer *to)
{
    gp_names *n = &x->sorter.from[0];
    gp_index_header h;
    memset(&h, 0, sizeof h);
    h.magic = GP_INDEX_MAGIC;
    h.entries = x->count;
    h.classes = x->classes;
    h.table = sizeof h;
    h.names = h.table + h.entries * sizeof(gp_index_entry);
    h.folders = h.names + x->entries.written - h.entries * 6;
    h.folders_end = h.folders + x->folders.written;
    h.classes_end = h.folders_end + x->listed_end;
    gp_writer_put(to, &h, sizeof h);
    for (int names = 0; names < 2; names++) {
        uint64_t offset = h.names;
        gp_names_begin(n, x->entries.file, 0, x->entries.written);
        for (uint64_t i = 0; i < h.entries && !to->failed; i++) {
            gp_index_entry e;
            memset(&e, 0, sizeof e);
            if (!gp_names_bytes(n, &e.label, sizeof e.label) || !gp_names_next(n))
                to->failed = 1;
            e.offset = offset;
            e.length = (uint32_t)n->length;
            offset += n->length;
            gp_writer_put(to, names ? (const void *)n->name : (const void *)&e,
                          names ? n->length : sizeof e);
        }
    }
    gp_index_copy(to, n, x->folders.file, x->folders.written);
    gp_index_copy(to, n, x->listed, x->listed_end);
}

GP_HOST int gp_index_make(gp_data *d, const gp_preparation *p, gp_writer *to)
{
    size_t room;
    gp_indexer *x = (gp_indexer *)gp_prepare_memory(d, &room);
    char near[GP_DATA_PATH];
    memset(x, 0, sizeof *x);
    x->data = d;
    int *file[] = {&x->folders.file, &x->entries.file, &x->listed, &x->sorter.file[0],
                   &x->sorter.file[1]};
    int open_files = 0, code = GP_OK;
    for (int i = 0; i < 5; i++) {
        const int found = (gp_prepared_name(p->beside, p->stamp, 0, near) &&
                           (*file[i] = gp_index_scratch(near)) >= 0) ||
                          (gp_prepared_name(p->beside, p->stamp, 1, near) &&
                           (*file[i] = gp_index_scratch(near)) >= 0);
        if (!found) {
            code = gp_data_errno(d->text, near);
            break;
        }
        open_files++;
    }
    if (code == GP_OK)
        code = gp_index_classes(x);
    gp_writer_flush(&x->folders);
    gp_writer_flush(&x->entries);
    if (code == GP_OK && (x->folders.failed || x->entries.failed))
        code = gp_data_errno(d->text, p->beside);
    if (code == GP_OK)
        gp_index_write(x, to);
    for (int i = 0; i < open_files; i++)
        close(*file[i]);
    return code;
}

/* ---- Reading -------------------------------------------------------------------------------- */

GP_HOST int gp_index_read_header(int file, gp_index_header *h)
{
    struct stat info;
    return fstat(file, &info) == 0 && gp_read_at(file, h, sizeof *h, 0) &&
           h->magic == GP_INDEX_MAGIC && h->classes_end == (uint64_t)info.st_size &&
           h->table == sizeof *h && h->entries < UINT64_C(1) << 48 &&
           h->names == h->table + h->entries * sizeof(gp_index_entry) && h->names <= h->folders &&
           h->folders <= h->folders_end && h->folders_end <= h->classes_end;
}

/* The folders are as they were. */
GP_HOST int gp_index_is_current(const gp_preparation *p, int file)
{
    gp_data *d = (gp_data *)p->context;
    gp_index_header h;
    size_t room;
    gp_names *n = (gp_names *)gp_prepare_memory(d, &room);
    if (!gp_index_read_header(file, &h))
        return 0;
    gp_names_begin(n, file, h.folders, h.folders_end);
    uint64_t folders = 0;
    for (; gp_names_next(n); folders++) {
        char path[GP_DATA_PATH];
        struct stat info;
        int64_t time[2];
        if (n->length < sizeof time)
            return 0;
        memcpy(time, n->name, sizeof time);
        const int length =
            snprintf(path, sizeof path, "%s%s", d->path, (const char *)n->name + sizeof time);
        if (length >= (int)sizeof path || stat(path, &info) != 0 ||
            info.st_mtim.tv_sec != time[0] || info.st_mtim.tv_nsec != time[1])
            return 0;
    }
    return folders > h.classes && n->at == h.folders_end && n->used == n->filled;
}

/* Opens the index of the folder d->path. */
GP_HOST int gp_index_open(gp_data *d)
{
    char beside[GP_DATA_PATH];
    gp_preparation p;
    gp_index_header h;
    memset(&p, 0, sizeof p);
    struct stat info;
    if (stat(d->path, &info) != 0)
        return gp_data_errno(d->text, d->path);
    if (!S_ISDIR(info.st_mode))
        return gp_data_fail(d->text, "%s: not a folder", gp_data_brief(d->path));
    if (snprintf(beside, sizeof beside, "%.*s.gplan-index", GP_DATA_PATH - 100, d->path) < 1)
        return GP_EDATA;
    p.original = d->path;
    p.beside = beside;
    p.is_current = gp_index_is_current;
    p.make = gp_index_make;
    p.context = d;
    const int code = gp_prepare(d, &p, &d->index);
    if (code != GP_OK)
        return code;
    if (!gp_index_read_header(d->index, &h))
        return gp_data_fail(d->text, "%s: the index was damaged while it was opened", beside);
    d->total = (int64_t)h.entries;
    d->classes = (int64_t)h.classes;
    return GP_OK;
}

/* The path of a sample, and its class. */
GP_HOST_FAST int gp_index_find(const gp_data *d, int64_t sample, char *path, int64_t *label,
                               char *text)
{
    gp_index_entry e;
    const size_t root = strlen(d->path);
    if (!gp_read_at(d->index, &e, sizeof e,
                    sizeof(gp_index_header) + (uint64_t)sample * sizeof e) ||
        root + 1 + e.length >= GP_DATA_PATH || e.label >= (uint64_t)d->classes ||
        !gp_read_at(d->index, path + root + 1, e.length, e.offset))
        return gp_data_fail(text, "%s.gplan-index: entry %lld is damaged", gp_data_brief(d->path),
                            (long long)sample);
    memcpy(path, d->path, root);
    path[root] = '/';
    path[root + 1 + e.length] = 0;
    *label = e.label;
    return GP_OK;
}

#endif
