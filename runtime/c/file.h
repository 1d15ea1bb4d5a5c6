/* Parameters in a file: the safetensors format. Eight bytes of length, a JSON header that says
 * for each tensor its dtype, shape and place, then the bytes, little-endian.
 *
 * Nothing is allocated: the header is read through a small window, twice. The first time checks
 * all of it, so that a file that is wrong changes nothing; the second time loads. */
#ifndef GP_FILE_H
#define GP_FILE_H

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

enum { GP_EFILE = 4, GP_EFORMAT = 5, GP_ETENSOR = 6 };

/* One tensor as a file knows it. */
typedef struct {
    const char *name;
    int dtype, rank;
    const int64_t *dim;
    void *data;
    size_t bytes;
#ifdef GP_CUDA
    void *stream; /* the cudaStream_t that its bytes are copied on */
#endif
} gp_item;

/* A number in the metadata, where safetensors has text: "step":"1200". */
typedef struct {
    const char *name;
    uint64_t number; /* loading: keeps what it was where the file does not have it */
} gp_note;

/* What is to be loaded or saved. */
typedef struct {
    gp_item (*item)(const void *model, size_t i);
    const void *model;
    size_t count;
    size_t needed; /* loading: of those behind the first `needed` all may be missing together */
    gp_note *note;
    size_t notes;
    unsigned char *seen; /* loading: a bit for each tensor, all 0 */
    char *detail;        /* loading: what went wrong, in words */
    size_t detail_size;
} gp_items;

GP_HOST const char *gp_dtype_name(int dtype)
{
    static const char *const name[] = {"F32", "F16", "BF16", "I32", "I64", "U8", "BOOL"};
    return name[dtype];
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

GP_HOST int gp_read_at(int file, void *data, size_t bytes, uint64_t offset)
{
    char *at = (char *)data;
    while (bytes > 0) {
        ssize_t n =
            pread(file, at, bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        at += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 1;
}

/* The bytes of a tensor, to and from the file. On a device they go through pieces of the host's
 * memory: cuda/model.cuh. */
GP_HOST int gp_write_data(int file, const gp_item *t);
GP_HOST int gp_read_data(int file, const gp_item *t, uint64_t offset);
#ifndef GP_CUDA
GP_HOST int gp_write_data(int file, const gp_item *t)
{
    return gp_write_all(file, t->data, t->bytes);
}

GP_HOST int gp_read_data(int file, const gp_item *t, uint64_t offset)
{
    return gp_read_at(file, t->data, t->bytes, offset);
}
#endif

/* ---- Saving --------------------------------------------------------------------------------- */

/* Text of the header: counted only while file is -1. */
typedef struct {
    int file, failed;
    uint64_t length;
    size_t used;
    char buffer[1024];
} gp_writer;

GP_HOST void gp_flush(gp_writer *w)
{
    if (w->file >= 0 && !w->failed && !gp_write_all(w->file, w->buffer, w->used))
        w->failed = 1;
    w->used = 0;
}

GP_HOST void gp_put(gp_writer *w, const char *text)
{
    for (; *text; text++) {
        if (w->used == sizeof w->buffer)
            gp_flush(w);
        w->buffer[w->used++] = *text;
        w->length++;
    }
}

GP_HOST void gp_put_number(gp_writer *w, uint64_t number)
{
    char text[24];
    size_t at = sizeof text;
    text[--at] = 0;
    do
        text[--at] = (char)('0' + number % 10);
    while (number /= 10);
    gp_put(w, text + at);
}

GP_HOST void gp_put_string(gp_writer *w, const char *text)
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

GP_HOST void gp_put_header(gp_writer *w, const gp_items *items)
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
    while (w->length % 8) /* the tensors begin on a multiple of 8 */
        gp_put(w, " ");
}

GP_HOST int gp_write_items(int file, const gp_items *items)
{
    gp_writer count = {.file = -1}, w = {.file = file};
    gp_put_header(&count, items);
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(count.length >> 8 * i);
    if (!gp_write_all(file, length, sizeof length))
        return 0;
    gp_put_header(&w, items);
    gp_flush(&w);
    int good = !w.failed;
    for (size_t i = 0; good && i < items->count; i++) {
        gp_item t = items->item(items->model, i);
        good = t.data && gp_write_data(file, &t);
    }
    return good && fsync(file) == 0;
}

/* So that a crash right after the rename finds the new name. */
GP_HOST void gp_sync_folder(char *path)
{
    char *end = strrchr(path, '/');
    const char *folder = end == path ? "/" : end ? path : ".";
    if (end)
        *end = 0;
    int file = open(folder, O_RDONLY);
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
}

/* The file appears whole or not at all: it is written under another name first. errno says why
 * it failed. */
GP_HOST int gp_save(const char *path, const gp_items *items)
{
    char name[4096];
    int length = snprintf(name, sizeof name, "%s.%ld.tmp", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof name) {
        errno = ENAMETOOLONG;
        return GP_EFILE;
    }
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0)
        return GP_EFILE;
    int good = gp_write_items(file, items);
    int why = errno;
    if (close(file) != 0 && good) {
        good = 0;
        why = errno;
    }
    if (good && rename(name, path) != 0) {
        good = 0;
        why = errno;
    }
    if (!good) {
        unlink(name);
        errno = why;
        return GP_EFILE;
    }
    gp_sync_folder(name);
    return GP_OK;
}

/* ---- Loading -------------------------------------------------------------------------------- */

typedef struct {
    int file;
    uint64_t at, end;  /* of the header that was not read yet, in the file */
    uint64_t data;     /* where the tensors begin */
    uint64_t file_end; /* bytes of the file */
    size_t used, filled;
    unsigned char buffer[4096];
    const char *path;
    const gp_items *items;
    size_t next; /* the tensor that probably comes next */
    int code;
} gp_reader;

/* What a header says of one tensor. */
typedef struct {
    char name[512], dtype[8];
    int rank;
    int64_t dim[GP_MAX_RANK];
    uint64_t begin, end;
    int fields; /* bits: dtype, shape, data_offsets */
} gp_entry;

/* Keeps the first complaint. */
#define GP_COMPLAIN(r, kind, ...)                                               \
    do {                                                                        \
        if ((r)->code == GP_OK)                                                 \
            snprintf((r)->items->detail, (r)->items->detail_size, __VA_ARGS__); \
        (r)->code = (r)->code ? (r)->code : (kind);                             \
    } while (0)

/* The next character of the header; 0 at its end and after an error. */
GP_HOST int gp_peek(gp_reader *r)
{
    if (r->code)
        return 0;
    if (r->used == r->filled) {
        uint64_t left = r->end - r->at;
        r->used = 0;
        r->filled = left < sizeof r->buffer ? (size_t)left : sizeof r->buffer;
        if (r->filled == 0)
            return 0;
        if (!gp_read_at(r->file, r->buffer, r->filled, r->at)) {
            GP_COMPLAIN(r, GP_EFILE, "%s: cannot be read", r->path);
            return 0;
        }
        r->at += r->filled;
    }
    return r->buffer[r->used];
}

GP_HOST int gp_next(gp_reader *r)
{
    int c = gp_peek(r);
    if (c)
        r->used++;
    return c;
}

GP_HOST int gp_skip_space(gp_reader *r)
{
    int c;
    while ((c = gp_peek(r)) == ' ' || c == '\n' || c == '\t' || c == '\r')
        r->used++;
    return c;
}

GP_HOST int gp_accept(gp_reader *r, int wanted)
{
    if (gp_skip_space(r) != wanted)
        return 0;
    r->used++;
    return 1;
}

GP_HOST void gp_expect(gp_reader *r, int wanted)
{
    if (!gp_accept(r, wanted))
        GP_COMPLAIN(r, GP_EFORMAT, "%s: no safetensors file: its header has no '%c' in its place",
                    r->path, wanted);
}

/* Four hex digits of a JSON escape as UTF-8; halves of pairs come out as they stand, which is
 * enough to tell such a name from ours. */
GP_HOST int gp_read_escape(gp_reader *r, char *out)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        int c = gp_next(r);
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 0;
        code = code * 16 + digit;
    }
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3f));
    out[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

/* A string that is too long is cut: it is then none of the names that are looked for. */
GP_HOST void gp_read_string(gp_reader *r, char *text, size_t size)
{
    size_t length = 0;
    int c;
    gp_expect(r, '"');
    while ((c = gp_next(r)) != '"') {
        char piece[3] = {(char)c, 0, 0};
        int bytes = 1;
        if (c == 0) {
            GP_COMPLAIN(r, GP_EFORMAT, "%s: no safetensors file: a string does not end", r->path);
            break;
        }
        if (c == '\\') {
            c = gp_next(r);
            piece[0] = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
            if (c == 'u')
                bytes = gp_read_escape(r, piece);
        }
        for (int i = 0; i < bytes; i++)
            if (length + 1 < size)
                text[length++] = piece[i];
    }
    text[length] = 0;
}

GP_HOST uint64_t gp_read_number(gp_reader *r)
{
    uint64_t number = 0;
    int digits = 0;
    gp_skip_space(r);
    for (int c; (c = gp_peek(r)) >= '0' && c <= '9' && digits < 19; digits++) {
        number = number * 10 + (uint64_t)(c - '0');
        r->used++;
    }
    if (digits == 0)
        GP_COMPLAIN(r, GP_EFORMAT, "%s: no safetensors file: a number is missing", r->path);
    return number;
}

/* Anything, unread: metadata and fields that are not known. Strings are minded, since they may
 * hold brackets. */
GP_HOST void gp_skip_value(gp_reader *r)
{
    int depth = 0;
    do {
        char text[2];
        int c = gp_skip_space(r);
        if (c == '"') {
            gp_read_string(r, text, sizeof text);
        } else if (c == '{' || c == '[') {
            depth++;
            r->used++;
        } else if (c == '}' || c == ']') {
            depth--;
            r->used++;
        } else if (c == 0) {
            GP_COMPLAIN(r, GP_EFORMAT, "%s: no safetensors file: its header is cut short", r->path);
        } else {
            r->used++;
        }
        c = gp_skip_space(r);
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return;
    } while (r->code == GP_OK);
}

GP_HOST void gp_read_shape(gp_reader *r, gp_entry *e)
{
    gp_expect(r, '[');
    if (gp_accept(r, ']'))
        return;
    do {
        int64_t dim = (int64_t)gp_read_number(r);
        if (e->rank < GP_MAX_RANK)
            e->dim[e->rank] = dim;
        e->rank++; /* beyond what any of ours has: no match */
    } while (r->code == GP_OK && gp_accept(r, ','));
    gp_expect(r, ']');
}

GP_HOST void gp_read_field(gp_reader *r, gp_entry *e)
{
    char field[16];
    gp_read_string(r, field, sizeof field);
    gp_expect(r, ':');
    if (strcmp(field, "dtype") == 0) {
        gp_read_string(r, e->dtype, sizeof e->dtype);
        e->fields |= 1;
    } else if (strcmp(field, "shape") == 0) {
        gp_read_shape(r, e);
        e->fields |= 2;
    } else if (strcmp(field, "data_offsets") == 0) {
        gp_expect(r, '[');
        e->begin = gp_read_number(r);
        gp_expect(r, ',');
        e->end = gp_read_number(r);
        gp_expect(r, ']');
        e->fields |= 4;
    } else {
        gp_skip_value(r);
    }
}

/* The place of a name among the tensors; count where it is none of them. */
GP_HOST size_t gp_find_item(gp_reader *r, const char *name)
{
    size_t count = r->items->count;
    for (size_t k = 0; k < count; k++) {
        size_t i = (r->next + k) % count;
        if (strcmp(r->items->item(r->items->model, i).name, name) == 0) {
            r->next = i + 1;
            return i;
        }
    }
    return count;
}

GP_HOST void gp_shape_text(char *text, size_t size, const char *dtype, int rank, const int64_t *dim)
{
    int length = snprintf(text, size, "%s[", dtype);
    for (int i = 0; i < rank && i < GP_MAX_RANK && length > 0 && (size_t)length < size; i++)
        length += snprintf(text + length, size - (size_t)length, "%s%lld", i ? ", " : "",
                           (long long)dim[i]);
    if (length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, "]");
}

GP_HOST void gp_check_entry(gp_reader *r, const gp_entry *e, const gp_item *t)
{
    int same = e->rank == t->rank && strcmp(e->dtype, gp_dtype_name(t->dtype)) == 0;
    for (int i = 0; same && i < t->rank; i++)
        same = e->dim[i] == t->dim[i];
    if (!same) {
        char have[64], want[64];
        gp_shape_text(have, sizeof have, e->dtype, e->rank, e->dim);
        gp_shape_text(want, sizeof want, gp_dtype_name(t->dtype), t->rank, t->dim);
        GP_COMPLAIN(r, GP_ETENSOR, "%s: is %s in the file, %s in the model", t->name, have, want);
    } else if (e->end < e->begin || e->end - e->begin != t->bytes) {
        GP_COMPLAIN(r, GP_EFORMAT, "%s: its place in the file does not have its size", t->name);
    } else if (e->end > r->file_end - r->data) {
        GP_COMPLAIN(r, GP_EFORMAT, "%s: the file is cut short: %s ends behind it", r->path,
                    t->name);
    } else if (!t->data) {
        GP_COMPLAIN(r, GP_ETENSOR, "%s: has no memory bound to it", t->name);
    }
}

/* A number as text; what is none stays unread. */
GP_HOST void gp_read_note(gp_reader *r, const char *name, int load)
{
    char text[24];
    uint64_t number = 0;
    size_t digits = 0;
    gp_read_string(r, text, sizeof text);
    for (; text[digits] >= '0' && text[digits] <= '9'; digits++)
        number = number * 10 + (uint64_t)(text[digits] - '0');
    for (size_t i = 0; i < r->items->notes && load && digits > 0 && !text[digits]; i++)
        if (strcmp(r->items->note[i].name, name) == 0)
            r->items->note[i].number = number;
}

GP_HOST void gp_read_metadata(gp_reader *r, int load)
{
    if (gp_skip_space(r) != '{') {
        gp_skip_value(r);
        return;
    }
    gp_expect(r, '{');
    if (gp_accept(r, '}'))
        return;
    do {
        char name[32];
        gp_read_string(r, name, sizeof name);
        gp_expect(r, ':');
        if (gp_skip_space(r) == '"')
            gp_read_note(r, name, load);
        else
            gp_skip_value(r);
    } while (r->code == GP_OK && gp_accept(r, ','));
    gp_expect(r, '}');
}

/* One tensor of the header: checked the first time, loaded the second. */
GP_HOST void gp_read_entry(gp_reader *r, int load)
{
    gp_entry e = {.fields = 0};
    gp_read_string(r, e.name, sizeof e.name);
    gp_expect(r, ':');
    if (strcmp(e.name, "__metadata__") == 0) {
        gp_read_metadata(r, load);
        return;
    }
    gp_expect(r, '{');
    do
        gp_read_field(r, &e);
    while (r->code == GP_OK && gp_accept(r, ','));
    gp_expect(r, '}');
    size_t i = r->code ? r->items->count : gp_find_item(r, e.name);
    if (i == r->items->count)
        return; /* not ours: a file may hold more */
    gp_item t = r->items->item(r->items->model, i);
    if (load) {
        if (!gp_read_data(r->file, &t, r->data + e.begin))
            GP_COMPLAIN(r, GP_EFILE, "%s: %s cannot be read", r->path, t.name);
        return;
    }
    if (e.fields != 7)
        GP_COMPLAIN(r, GP_EFORMAT, "%s: the file lacks its dtype, shape or place", t.name);
    else if (r->items->seen[i / 8] & 1 << i % 8)
        GP_COMPLAIN(r, GP_EFORMAT, "%s: stands twice in the file", t.name);
    else
        gp_check_entry(r, &e, &t);
    r->items->seen[i / 8] |= (unsigned char)(1 << i % 8);
}

GP_HOST void gp_read_header(gp_reader *r, int load)
{
    r->at = 8;
    r->end = r->data;
    r->used = r->filled = 0;
    r->next = 0;
    gp_expect(r, '{');
    if (!gp_accept(r, '}')) {
        do
            gp_read_entry(r, load);
        while (r->code == GP_OK && gp_accept(r, ','));
        gp_expect(r, '}');
    }
    int rest = 0; /* any of those that may be missing together */
    for (size_t i = r->items->needed; i < r->items->count; i++)
        rest |= r->items->seen[i / 8] & 1 << i % 8;
    for (size_t i = 0; i < r->items->count && !load && r->code == GP_OK; i++)
        if (!(r->items->seen[i / 8] & 1 << i % 8) && (i < r->items->needed || rest))
            GP_COMPLAIN(r, GP_ETENSOR, "%s: is not in %s", r->items->item(r->items->model, i).name,
                        r->path);
}

GP_HOST int gp_load(const char *path, const gp_items *items)
{
    gp_reader r = {.file = open(path, O_RDONLY), .path = path, .items = items};
    unsigned char length[8];
    if (r.file < 0) {
        GP_COMPLAIN(&r, GP_EFILE, "%s: cannot be opened: %s", path, strerror(errno));
        return r.code;
    }
    off_t end = lseek(r.file, 0, SEEK_END);
    if (end < 8 || !gp_read_at(r.file, length, 8, 0)) {
        GP_COMPLAIN(&r, GP_EFORMAT, "%s: no safetensors file: shorter than its first 8 bytes",
                    path);
    } else {
        uint64_t bytes = 0;
        for (int i = 8; i-- > 0;)
            bytes = bytes << 8 | length[i];
        r.file_end = (uint64_t)end;
        if (bytes > r.file_end - 8)
            GP_COMPLAIN(&r, GP_EFORMAT,
                        "%s: cut short, or no safetensors file: its header would end behind it",
                        path);
        r.data = 8 + bytes;
    }
    for (int load = 0; load < 2 && r.code == GP_OK; load++)
        gp_read_header(&r, load);
    close(r.file);
    return r.code;
}

#endif
