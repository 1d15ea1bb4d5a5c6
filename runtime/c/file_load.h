/* Reads a safetensors file: see file.h.
 *
 * The header is not kept, so it is read several times, through a small buffer. First all of it is
 * validated, so that an invalid file changes nothing; the last pass loads. Names and places are
 * compared by hashes of 64 bits. */
#ifndef GP_FILE_LOAD_H
#define GP_FILE_LOAD_H

#include "file.h"
#include "hash.h"

#include <stdarg.h>
#include <stdlib.h>

typedef struct {
    int file, code;
    uint64_t at;       /* file offset of what the buffer is filled with next */
    uint64_t data;     /* where the header ends and the tensors start */
    uint64_t file_end; /* file size */
    uint64_t hash;     /* hash of the header as read in this pass */
    size_t used, filled;
    unsigned char buffer[4096];
    const char *path;
    const gp_items *items;
    size_t next;                         /* the tensor expected next */
    uint64_t entries, bytes, last, ends; /* of all tensors: their count, bytes and last end; the
                                            ends less the starts of them, as hashes */
} gp_reader;

/* One entry of the header. */
typedef struct {
    char name[80]; /* the first bytes of it */
    uint64_t hash; /* of all of it */
    char dtype[8];
    int rank;
    int64_t dim[GP_MAX_RANK];
    uint64_t begin, end;
    int fields; /* bits: dtype, shape, data_offsets */
} gp_entry;

/* Reports an error in the file or tensor of this name. The first one is kept. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
GP_HOST void
gp_complain(gp_reader *r, int code, const char *name, const char *format, ...)
{
    char text[160];
    va_list arguments;
    if (r->code != GP_OK)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    GP_DETAIL(r->items, "%s: %s", gp_brief(name), text);
    r->code = code;
}

GP_HOST void gp_broken(gp_reader *r, const char *what)
{
    gp_complain(r, GP_EFORMAT, r->path, "not a safetensors file: %s", what);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Bytes of the file, which was checked to be long enough. */
#ifdef GP_NO_MAP
#define gp_fetch(r, to, bytes, at) gp_read_at((r)->file, to, bytes, at)
#else
GP_HOST int gp_fetch(const gp_reader *r, void *to, size_t bytes, uint64_t at)
{
    if (!r->items->mapped)
        return gp_read_at(r->file, to, bytes, at);
    memcpy(to, r->items->mapped + at, bytes);
    return 1;
}
#endif

/* The next character of the header; 0 at the end and after an error. */
GP_HOST int gp_peek(gp_reader *r)
{
    if (r->code == GP_OK && r->used == r->filled) {
        const uint64_t left = r->data - r->at;
        r->used = 0;
        r->filled = left < sizeof r->buffer ? (size_t)left : sizeof r->buffer;
        if (!gp_fetch(r, r->buffer, r->filled, r->at))
            gp_complain(r, GP_EFILE, r->path, "cannot be read");
        r->hash = gp_hash_bytes(r->hash, r->buffer, r->filled);
        r->at += r->filled;
    }
    if (r->code != GP_OK || r->filled == 0)
        return 0;
    if (r->buffer[r->used] == 0)
        gp_broken(r, "its header has a zero byte");
    return r->buffer[r->used];
}

GP_HOST int gp_next(gp_reader *r)
{
    const int c = gp_peek(r);
    r->used += c != 0;
    return c;
}

/* Takes this character, behind spaces, if it is the next. */
GP_HOST int gp_accept(gp_reader *r, int wanted)
{
    int c;
    while ((c = gp_peek(r)) == ' ' || c == '\n' || c == '\t' || c == '\r')
        r->used++;
    r->used += c == wanted && c != 0;
    return c == wanted;
}

GP_HOST void gp_expect(gp_reader *r, int wanted)
{
    if (!gp_accept(r, wanted))
        gp_complain(r, GP_EFORMAT, r->path,
                    "not a safetensors file: its header has no '%c' in its place", wanted);
}

/* for (int n = 0; gp_more(r, n, '[', ']'); n++): the elements of a list. */
GP_HOST int gp_more(gp_reader *r, int n, int open, int close)
{
    if (n == 0)
        gp_expect(r, open);
    if (gp_accept(r, close))
        return 0;
    if (n > 0)
        gp_expect(r, ',');
    return r->code == GP_OK;
}

/* Four hex digits of a JSON escape as UTF-8; surrogates are encoded one by one, which is enough to
 * tell such a name from ours. */
GP_HOST int gp_read_escape(gp_reader *r, char *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        const int c = gp_next(r);
        const char *digit = c ? strchr(digits, c) : NULL;
        if (!digit)
            gp_broken(r, "an escape without four digits");
        code = code * 16 + (digit ? (unsigned)(digit - digits) % 16 : 0);
    }
    const int bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    for (int i = bytes - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((bytes == 1 ? 0 : bytes == 2 ? 0xc0 : 0xe0) | code);
    return bytes;
}

/* The next character of a string, and its length in bytes; 0 after the closing quote. */
GP_HOST int gp_read_char(gp_reader *r, char *piece)
{
    static const char escaped[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    int c = gp_next(r);
    if (c == '"')
        return 0;
    if (c == 0)
        gp_broken(r, "a string does not end");
    piece[0] = (char)c;
    if (c != '\\')
        return c != 0;
    c = gp_next(r);
    if (c == 'u')
        return gp_read_escape(r, piece);
    const char *found = c ? strchr(escaped, c) : NULL;
    if (!found)
        gp_broken(r, "an escape that JSON does not have");
    piece[0] = found ? meant[found - escaped] : 0;
    return found != NULL;
}

/* Returns its hash. One that is too long is truncated: it then matches no keyword. */
GP_HOST uint64_t gp_read_string(gp_reader *r, char *text, size_t size)
{
    uint64_t hash = GP_HASH_START;
    size_t length = 0;
    char piece[3];
    gp_expect(r, '"');
    for (int bytes; (bytes = gp_read_char(r, piece)) > 0;) {
        hash = gp_hash_bytes(hash, piece, (size_t)bytes);
        for (int i = 0; i < bytes && length + 1 < size; i++)
            text[length++] = piece[i];
    }
    text[length] = 0;
    return hash;
}

GP_HOST uint64_t gp_read_number(gp_reader *r)
{
    uint64_t number = 0;
    int digits = 0;
    gp_accept(r, 0); /* spaces */
    for (int c; (c = gp_peek(r)) >= '0' && c <= '9' && digits < 19; digits++, r->used++)
        number = number * 10 + (uint64_t)(c - '0');
    if (digits == 0)
        gp_broken(r, "a number is missing");
    return number;
}

/* ---- Entries -------------------------------------------------------------------------------- */

GP_HOST void gp_read_field(gp_reader *r, gp_entry *e)
{
    char field[16];
    int bit = 0;
    gp_read_string(r, field, sizeof field);
    gp_expect(r, ':');
    if (strcmp(field, "dtype") == 0) {
        gp_read_string(r, e->dtype, sizeof e->dtype);
        bit = 1;
    } else if (strcmp(field, "shape") == 0) {
        for (int n = 0; gp_more(r, n, '[', ']'); n++) {
            const int64_t dim = (int64_t)gp_read_number(r);
            if (e->rank < GP_MAX_RANK)
                e->dim[e->rank] = dim;
            e->rank += e->rank <= GP_MAX_RANK; /* larger than any of ours: no match */
        }
        bit = 2;
    } else if (strcmp(field, "data_offsets") == 0) {
        gp_expect(r, '[');
        e->begin = gp_read_number(r);
        gp_expect(r, ',');
        e->end = gp_read_number(r);
        gp_expect(r, ']');
        bit = 4;
    } else {
        gp_broken(r, "a tensor has a field that is none");
    }
    if (e->fields & bit)
        gp_broken(r, "a field of a tensor occurs twice");
    e->fields |= bit;
}

/* Texts of the metadata; numbers that are wanted are noted. */
GP_HOST void gp_read_notes(gp_reader *r, gp_note *note, size_t notes)
{
    for (int n = 0; gp_more(r, n, '{', '}'); n++) {
        char name[32], text[24], *end;
        gp_read_string(r, name, sizeof name);
        gp_expect(r, ':');
        gp_read_string(r, text, sizeof text);
        errno = 0;
        const uint64_t number = strtoull(text, &end, 10);
        for (size_t i = 0; i < notes; i++)
            if (strcmp(note[i].name, name) == 0 && *text >= '0' && *text <= '9' && !*end && !errno)
                note[i].number = number;
    }
}

/* Reads an entry; false: it is the metadata. */
GP_HOST int gp_read_entry(gp_reader *r, gp_entry *e, gp_note *note, size_t notes)
{
    memset(e, 0, sizeof *e);
    e->hash = gp_read_string(r, e->name, sizeof e->name);
    gp_expect(r, ':');
    if (strcmp(e->name, "__metadata__") == 0) {
        gp_read_notes(r, note, notes);
        return 0;
    }
    for (int n = 0; gp_more(r, n, '{', '}'); n++)
        gp_read_field(r, e);
    return r->code == GP_OK;
}

GP_HOST void gp_rewind(gp_reader *r)
{
    r->at = 8;
    r->used = r->filled = r->next = 0;
    r->hash = GP_HASH_START;
}

/* ---- Checks --------------------------------------------------------------------------------- */

/* The index of the model's tensor with this name; count if there is none. */
GP_HOST size_t gp_find_item(gp_reader *r, const gp_entry *e)
{
    const size_t count = r->items->count;
    for (size_t k = 0; k < count; k++) {
        const size_t i = (r->next + k) % count;
        if (gp_key(r->items->item(r->items->model, i).name) == e->hash) {
            r->next = i + 1;
            return i;
        }
    }
    return count;
}

GP_HOST void gp_shape_text(char *text, size_t size, const char *dtype, int rank, const int64_t *dim)
{
    size_t length = (size_t)snprintf(text, size, "%s[", dtype);
    for (int i = 0; i < rank && i < GP_MAX_RANK && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%lld", i ? ", " : "",
                                   (long long)dim[i]);
    if (length < size)
        snprintf(text + length, size - length, "]");
}

/* Its dtype and shape match the model's. */
GP_HOST void gp_check_item(gp_reader *r, const gp_entry *e, const gp_item *t)
{
    int same = e->rank == t->rank && strcmp(e->dtype, gp_dtype_name(t->dtype)) == 0;
    for (int i = 0; same && i < t->rank; i++)
        same = e->dim[i] == t->dim[i];
    if (!same) {
        char have[64], want[64];
        gp_shape_text(have, sizeof have, e->dtype, e->rank, e->dim);
        gp_shape_text(want, sizeof want, gp_dtype_name(t->dtype), t->rank, t->dim);
        gp_complain(r, GP_ETENSOR, t->name, "is %s in the file, %s in the model", have, want);
    }
    if (e->end - e->begin != t->bytes)
        gp_complain(r, GP_EFORMAT, t->name, "its place in the file does not have its size");
#ifndef GP_NO_MAP
    if (r->items->mapped && (uintptr_t)(r->items->mapped + r->data + e->begin) % gp_size(t->dtype))
        gp_complain(r, GP_ETENSOR, t->name, "is misaligned in memory");
    if (!r->items->mapped && !t->data)
        gp_complain(r, GP_ETENSOR, t->name, "has no memory bound to it");
#endif
}

/* Bits of an offset, mixed (the finalizer of MurmurHash3). */
GP_HOST uint64_t gp_hash_offset(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* Its bytes are within the file, whoever it belongs to. */
GP_HOST void gp_check_extent(gp_reader *r, const gp_entry *e)
{
    if (e->fields != 7)
        gp_complain(r, GP_EFORMAT, e->name, "the file lacks its dtype, shape or place");
    else if (e->end < e->begin)
        gp_complain(r, GP_EFORMAT, e->name, "its place in the file does not have its size");
    else if (e->end > r->file_end - r->data)
        gp_complain(r, GP_EFORMAT, r->path, "the file is truncated: %s ends after it", e->name);
    r->entries++;
    r->bytes += e->end - e->begin;
    r->last = e->end > r->last ? e->end : r->last;
    r->ends += gp_hash_offset(e->end) - gp_hash_offset(e->begin);
}

/* Each byte after the header belongs to one tensor. Where every end but that of the file is a
 * start, as often, and every start but 0 an end, tensors follow one another. */
GP_HOST void gp_check_extents(gp_reader *r)
{
    const uint64_t end = r->file_end - r->data, path = gp_hash_offset(end) - gp_hash_offset(0);
    if (r->bytes > r->last)
        gp_complain(r, GP_EFORMAT, r->path, "two tensors share bytes");
    else if (r->last < end)
        gp_complain(r, GP_EFORMAT, r->path, "%llu bytes follow the last tensor",
                    (unsigned long long)(end - r->last));
    else if (r->ends != path)
        gp_complain(r, GP_EFORMAT, r->path, "tensors share bytes or leave some out");
}

/* No name occurs twice: a part of the names at a time, in a hash table. */
GP_HOST void gp_check_names(gp_reader *r)
{
    enum { SLOTS = 1024, NAMES = SLOTS / 4 };
    const uint64_t parts = r->entries / NAMES + 1;
    for (uint64_t part = 0; part < parts && r->code == GP_OK; part++) {
        uint64_t slot[SLOTS] = {0};
        int used = 0;
        gp_rewind(r);
        for (int n = 0; gp_more(r, n, '{', '}'); n++) {
            gp_entry e;
            gp_read_entry(r, &e, NULL, 0);
            const uint64_t name = e.hash | 1; /* 0: a free slot */
            if ((name >> 32) % parts != part)
                continue;
            size_t at = name % SLOTS;
            while (slot[at] && slot[at] != name)
                at = (at + 1) % SLOTS;
            if (slot[at] || ++used == SLOTS)
                gp_complain(r, GP_EFORMAT, r->path, "a name occurs twice in the file");
            slot[at] = name;
        }
    }
}

/* All of the header. */
GP_HOST void gp_check_header(gp_reader *r)
{
    gp_rewind(r);
    for (int n = 0; gp_more(r, n, '{', '}'); n++) {
        gp_entry e;
        if (!gp_read_entry(r, &e, NULL, 0))
            continue;
        gp_check_extent(r, &e);
        const size_t i = gp_find_item(r, &e);
        if (i == r->items->count || r->code != GP_OK)
            continue; /* a file may hold more than the model's */
        const gp_item t = r->items->item(r->items->model, i);
        if (r->items->seen[i / 8] & 1 << i % 8)
            gp_complain(r, GP_EFORMAT, t.name, "occurs twice in the file");
        gp_check_item(r, &e, &t);
        r->items->seen[i / 8] |= (unsigned char)(1 << i % 8);
    }
    if (!gp_accept(r, 0))
        gp_broken(r, "something follows its header");
}

/* Whether all that the model needs was seen. */
GP_HOST void gp_check_seen(gp_reader *r)
{
    const gp_items *items = r->items;
    int rest = 0; /* any of those that may be missing together */
    for (size_t i = items->needed; i < items->count; i++)
        rest |= items->seen[i / 8] & 1 << i % 8;
    for (size_t i = 0; i < items->count && r->code == GP_OK; i++)
        if (!(items->seen[i / 8] & 1 << i % 8) && (i < items->needed || rest))
            gp_complain(r, GP_ETENSOR, items->item(items->model, i).name, "is not in %s",
                        gp_brief(r->path));
}

/* ---- The file ------------------------------------------------------------------------------- */

#if defined(__APPLE__)
#define GP_NANOSECONDS(status) 0
#else
#define GP_NANOSECONDS(status) ((status)->st_mtim.tv_nsec)
#endif

/* Whether it was written to since. A rename does not count: that is how a save ends. */
GP_HOST int gp_is_unchanged(int file, const struct stat *then)
{
    struct stat now;
    return fstat(file, &now) == 0 && now.st_size == then->st_size &&
           now.st_mtime == then->st_mtime && GP_NANOSECONDS(&now) == GP_NANOSECONDS(then);
}

/* Where the header ends. */
GP_HOST void gp_read_length(gp_reader *r)
{
    unsigned char length[8];
    uint64_t bytes = 0;
    if (r->file_end < 8 || !gp_fetch(r, length, 8, 0)) {
        gp_broken(r, "shorter than its first 8 bytes");
        return;
    }
    for (int i = 8; i-- > 0;)
        bytes = bytes << 8 | length[i];
    if (bytes > r->file_end - 8)
        gp_complain(r, GP_EFORMAT, r->path,
                    "truncated, or not a safetensors file: its header would end after it");
    r->data = 8 + bytes;
}

/* The bytes of the model's tensors, and what is noted in the metadata. */
GP_HOST void gp_read_tensors(gp_reader *r)
{
    const gp_items *items = r->items;
    gp_rewind(r);
    for (int n = 0; gp_more(r, n, '{', '}'); n++) {
        gp_entry e;
        if (!gp_read_entry(r, &e, items->note, items->notes))
            continue;
        const size_t i = gp_find_item(r, &e);
        if (i == items->count)
            continue;
        const gp_item t = items->item(items->model, i);
#ifndef GP_NO_MAP
        if (items->mapped) {
            items->bind(items->model, i, items->mapped + r->data + e.begin);
            continue;
        }
#endif
        if (!gp_read_data(r->file, &t, r->data + e.begin))
            gp_complain(r, GP_EFILE, r->path, "%s cannot be read", gp_brief(t.name));
    }
}

/* status: fstat of the file; NULL: it is mapped. */
GP_HOST void gp_read_items(gp_reader *r, const struct stat *status)
{
    gp_read_length(r);
    gp_check_header(r);
    const uint64_t hash = r->hash;
    gp_check_seen(r);
    gp_check_names(r);
    gp_check_extents(r);
    gp_read_tensors(r);
    if (r->hash != hash || (status && !gp_is_unchanged(r->file, status)))
        gp_complain(r, GP_EFILE, r->path, "was changed while it was read");
}

/* Opened without blocking: a pipe is not a parameter file. */
GP_HOST int gp_load(const char *path, const gp_items *items)
{
    gp_reader r = {.file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    struct stat status;
    r.path = path;
    r.items = items;
    if (r.file < 0 || fstat(r.file, &status) != 0)
        gp_complain(&r, GP_EFILE, path, "cannot be opened: %s", strerror(errno));
    else if (!S_ISREG(status.st_mode))
        gp_complain(&r, GP_EFILE, path, "is %s",
                    S_ISDIR(status.st_mode) ? "a folder" : "no regular file");
    r.file_end = r.code == GP_OK ? (uint64_t)status.st_size : 0;
    if (r.code == GP_OK)
        gp_read_items(&r, &status);
    if (r.file >= 0)
        close(r.file);
    if (r.code == GP_OK)
        gp_no_detail(items);
    return r.code;
}

#ifndef GP_NO_MAP
/* The same for a mapped file: its tensors are bound in place. */
GP_HOST int gp_map(const gp_items *items)
{
    gp_reader r = {.file = -1, .file_end = items->mapped_bytes};
    r.path = "the mapped file";
    r.items = items;
    gp_read_items(&r, NULL);
    if (r.code == GP_OK)
        gp_no_detail(items);
    return r.code;
}
#endif

#endif
