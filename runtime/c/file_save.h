/* Writes a safetensors file, atomically: see file.h. */
#ifndef GP_FILE_SAVE_H
#define GP_FILE_SAVE_H

#include "file.h"

/* ---- The header ----------------------------------------------------------------------------- */

/* Writes header text; only counts it while file is -1. */
typedef struct {
    int file, failed;
    uint64_t length;
    size_t used;
    char buffer[1024];
} gp_file_writer;

GP_HOST void gp_flush(gp_file_writer *w)
{
    if (w->file >= 0 && !w->failed && !gp_write_all(w->file, w->buffer, w->used))
        w->failed = 1;
    w->used = 0;
}

GP_HOST void gp_put(gp_file_writer *w, const char *text)
{
    for (; *text; text++) {
        if (w->used == sizeof w->buffer)
            gp_flush(w);
        w->buffer[w->used++] = *text;
        w->length++;
    }
}

GP_HOST void gp_put_number(gp_file_writer *w, uint64_t number)
{
    char text[24];
    size_t at = sizeof text;
    text[--at] = 0;
    do
        text[--at] = (char)('0' + number % 10);
    while (number /= 10);
    gp_put(w, text + at);
}

GP_HOST void gp_put_string(gp_file_writer *w, const char *text)
{
    gp_put(w, "\"");
    for (; *text; text++) {
        char one[3] = {*text, 0, 0};
        if (*text == '"' || *text == '\\') {
            one[0] = '\\';
            one[1] = *text;
        }
        gp_put(w, one);
    }
    gp_put(w, "\"");
}

GP_HOST void gp_put_header(gp_file_writer *w, const gp_items *items)
{
    uint64_t offset = 0;
    gp_put(w, "{");
    for (size_t i = 0; i < items->notes; i++) {
        gp_put(w, i ? "\",\"" : "\"__metadata__\":{\"");
        gp_put(w, items->note[i].name);
        gp_put(w, "\":\"");
        gp_put_number(w, items->note[i].number);
    }
    gp_put(w, items->notes ? "\"}" : "");
    for (size_t i = 0; i < items->count; i++) {
        gp_item t = items->item(items->model, i);
        gp_put(w, i || items->notes ? "," : "");
        gp_put_string(w, t.name);
        gp_put(w, ":{\"dtype\":\"");
        gp_put(w, gp_dtype_name(t.dtype));
        gp_put(w, "\",\"shape\":[");
        for (int d = 0; d < t.rank; d++) {
            gp_put(w, d ? "," : "");
            gp_put_number(w, (uint64_t)t.dim[d]);
        }
        gp_put(w, "],\"data_offsets\":[");
        gp_put_number(w, offset);
        gp_put(w, ",");
        gp_put_number(w, offset += t.bytes);
        gp_put(w, "]}");
    }
    gp_put(w, "}");
    while (w->length % 8) /* tensors are aligned to 8 bytes */
        gp_put(w, " ");
}

GP_HOST int gp_write_header(int file, const gp_items *items)
{
    gp_file_writer count = {.file = -1}, w = {.file = file};
    gp_put_header(&count, items);
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(count.length >> 8 * i);
    if (!gp_write_all(file, length, sizeof length))
        return 0;
    gp_put_header(&w, items);
    gp_flush(&w);
    return !w.failed;
}

GP_HOST int gp_write_items(int file, const gp_items *items)
{
    int good = gp_write_header(file, items);
    for (size_t i = 0; good && i < items->count; i++) {
        gp_item t = items->item(items->model, i);
        good = gp_write_data(file, &t);
    }
    return good && fsync(file) == 0;
}

/* ---- The file ------------------------------------------------------------------------------- */

/* Writes to the file at `path`; errno is set on failure. */
GP_HOST int gp_replace(const char *path, const gp_items *items)
{
    char name[GP_PATH], made[GP_PATH];
    struct stat old;
    if (!gp_resolve(path, name))
        return 0;
    const int known = stat(name, &old) == 0;
    if (known && !S_ISREG(old.st_mode))
        return gp_fail(S_ISDIR(old.st_mode) ? EISDIR : EINVAL);
    const int file = gp_create_beside(name, made, known ? old.st_mode & 0777 : 0666);
    if (file < 0)
        return 0;
    int good = (!known || gp_keep_mode(file, &old)) && gp_write_items(file, items);
    int why = errno;
    if (close(file) != 0 && good) {
        good = 0;
        why = errno;
    }
    if (good && rename(made, name) != 0) {
        good = 0;
        why = errno;
    }
    if (!good) {
        unlink(made);
        return gp_fail(why);
    }
    gp_sync_folder(made);
    return 1;
}

/* Atomic: written under a temporary name first, then renamed. Keeps the file's mode, and a symlink
 * stays one. errno is set on failure. */
GP_HOST int gp_save(const char *path, const gp_items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        const gp_item t = items->item(items->model, i);
        if (!t.data) {
            GP_DETAIL(items, "%s: has no memory bound to it", gp_shorten(t.name).text);
            return GP_ETENSOR;
        }
    }
    if (!gp_replace(path, items)) {
        const int why = errno;
        GP_DETAIL(items, "%s: cannot be written: %s", gp_shorten(path).text, strerror(why));
        errno = why;
        return GP_EFILE;
    }
    gp_no_detail(items);
    return GP_OK;
}

#endif
