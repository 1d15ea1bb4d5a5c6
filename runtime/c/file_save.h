/* Writes a safetensors file, atomically: see file.h. */
#ifndef GP_FILE_SAVE_H
#define GP_FILE_SAVE_H

#include "file.h"

/* ---- The header ----------------------------------------------------------------------------- */

typedef struct {
    int file, failed;
    uint64_t length;
    size_t used;
    char buffer[1024];
} gp_file_writer;

GP_HOST void gp_flush(gp_file_writer *w)
{
    w->failed |= !gp_write_all(w->file, w->buffer, w->used);
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
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    gp_put(w, text);
}

GP_HOST void gp_put_string(gp_file_writer *w, const char *text)
{
    gp_put(w, "\"");
    for (; *text; text++) {
        const char one[2] = {*text, 0};
        gp_put(w, *text == '"' || *text == '\\' ? "\\" : "");
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
        const gp_item t = items->item(items->model, i);
        gp_put(w, i || items->notes ? "," : "");
        gp_put_string(w, t.name);
        gp_put(w, ":{\"dtype\":\"");
        gp_put(w, gp_dtype_name(t.dtype));
        for (int d = 0; d < t.rank; d++) {
            gp_put(w, d ? "," : "\",\"shape\":[");
            gp_put_number(w, (uint64_t)t.dim[d]);
        }
        gp_put(w, t.rank ? "],\"data_offsets\":[" : "\",\"shape\":[],\"data_offsets\":[");
        gp_put_number(w, offset);
        gp_put(w, ",");
        gp_put_number(w, offset += t.bytes);
        gp_put(w, "]}");
    }
    gp_put(w, "}");
    while (w->length % 8) /* tensors are aligned to 8 bytes */
        gp_put(w, " ");
    gp_flush(w);
}

/* Its length stands before it, but is known after it. */
GP_HOST int gp_write_header(int file, const gp_items *items)
{
    gp_file_writer w = {.file = file};
    unsigned char length[8] = {0};
    w.failed = !gp_write_all(file, length, sizeof length);
    gp_put_header(&w, items);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(w.length >> 8 * i);
    return !w.failed && lseek(file, 0, SEEK_SET) == 0 &&
           gp_write_all(file, length, sizeof length) && lseek(file, 0, SEEK_END) > 0;
}

#ifdef GP_RANKS
enum { GP_WRITE_PIECE = 1 << 20, GP_WRITE_SYNC = 1 << 26 };

/* So many bytes of a tensor, from `from` on. Other ranks wait meanwhile, and ask whether this one
 * is there: it looks after each piece, and what is written comes to the disk now and then, for to
 * sync all of it at the end may take as long. */
GP_HOST int gp_write_pieces(int file, const gp_items *items, const gp_item *t, size_t from,
                            size_t bytes)
{
    const uint64_t begin = (uint64_t)lseek(file, 0, SEEK_CUR);
    int good = 1;
    for (size_t at = 0, n; at < bytes && good; at += n) {
        n = bytes - at < GP_WRITE_PIECE ? bytes - at : (size_t)GP_WRITE_PIECE;
        good = gp_write_part(file, t, from + at, n);
        if (good && (begin + at) / GP_WRITE_SYNC < (begin + at + n) / GP_WRITE_SYNC)
            good = fsync(file) == 0;
        if (items->look)
            items->look(items->model);
    }
    return good;
}
#else
#define gp_write_pieces(file, items, t, from, bytes) gp_write_part(file, t, from, bytes)
#endif

GP_HOST int gp_write_items(int file, const gp_items *items)
{
    int good = gp_write_header(file, items);
    for (size_t i = 0; good && i < items->count; i++) {
        const gp_item t = items->item(items->model, i);
        good = gp_write_pieces(file, items, &t, 0, t.bytes);
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
    int why = (!known || gp_keep_mode(file, &old)) && gp_write_items(file, items) ? 0 : errno;
    if (close(file) != 0 && !why)
        why = errno;
    if (!why && rename(made, name) != 0)
        why = errno;
    if (why) {
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
    if (!gp_replace(path, items)) {
        const int why = errno;
        GP_DETAIL(items, "%s: cannot be written: %s", gp_brief(path), strerror(why));
        errno = why;
        return GP_EFILE;
    }
    gp_no_detail(items);
    return GP_OK;
}

#endif
