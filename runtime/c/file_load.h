/* Reads a safetensors file: see file.h.
 *
 * The header is not kept, so it is read several times, through a small buffer. First all of it is
 * validated, so that an invalid file changes nothing; the last pass loads. */
#ifndef GP_FILE_LOAD_H
#define GP_FILE_LOAD_H

#include "file.h"

#include <stdarg.h>

/* The passes over the header. */
enum {
    GP_PASS_CHECK,   /* tensors match those of the model */
    GP_PASS_NAMES,   /* names are unique */
    GP_PASS_EXTENTS, /* each byte after the header belongs to one tensor */
    GP_PASS_LOAD
};

enum { GP_WINDOW = 256 };
#define GP_HASH_START UINT64_C(0xcbf29ce484222325)

/* The smallest keys of a pass, sorted: hashes of names, or offsets of tensors. */
typedef struct {
    uint64_t from; /* smaller ones were handled in an earlier pass */
    size_t count;
    int twice; /* a key occurred twice */
    struct {
        uint64_t key, value;
    } at[GP_WINDOW];
} gp_window;

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
    gp_window *window;
    size_t next;      /* the tensor expected next */
    uint64_t tensors; /* non-empty tensors of the file */
    uint64_t tiled;   /* bytes of tensors so far, in sorted order */
    int unsorted;
} gp_reader;

/* One entry of the header. */
typedef struct {
    uint64_t at;           /* offset of its name in the file */
    uint64_t hash, length; /* hash of its name */
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
    GP_DETAIL(r->items, "%s: %s", gp_shorten(name).text, text);
    r->code = code;
}

GP_HOST void gp_broken(gp_reader *r, const char *what)
{
    gp_complain(r, GP_EFORMAT, r->path, "not a safetensors file: %s", what);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

GP_HOST uint64_t gp_hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

/* Bytes of the file, which was checked to be long enough. */
GP_HOST int gp_fetch(const gp_reader *r, void *to, size_t bytes, uint64_t at)
{
    if (GP_WAY(file_maps, r->items->mapped)) {
        memcpy(to, r->items->mapped + at, bytes);
        return 1;
    }
    return gp_read_at(r->file, to, bytes, at);
}

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

GP_HOST int gp_skip_space(gp_reader *r)
{
    int c;
    while ((c = gp_peek(r)) == ' ' || c == '\n' || c == '\t' || c == '\r')
        r->used++;
    return c;
}

GP_HOST int gp_accept(gp_reader *r, int wanted)
{
    const int found = gp_skip_space(r) == wanted;
    r->used += (size_t)found;
    return found;
}

GP_HOST void gp_expect(gp_reader *r, int wanted)
{
    if (!gp_accept(r, wanted))
        gp_complain(r, GP_EFORMAT, r->path,
                    "not a safetensors file: its header has no '%c' in its place", wanted);
}

/* for (int more = gp_open(r, '[', ']'); more; more = gp_more(r, ']')): the elements of a list. */
GP_HOST int gp_open(gp_reader *r, int open, int close)
{
    gp_expect(r, open);
    return !gp_accept(r, close) && r->code == GP_OK;
}

GP_HOST int gp_more(gp_reader *r, int close)
{
    if (gp_accept(r, ','))
        return r->code == GP_OK;
    gp_expect(r, close);
    return 0;
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

/* One that is too long is truncated: it then matches no keyword. */
GP_HOST void gp_read_string(gp_reader *r, char *text, size_t size)
{
    size_t length = 0;
    char piece[3];
    gp_expect(r, '"');
    for (int bytes; (bytes = gp_read_char(r, piece)) > 0;)
        for (int i = 0; i < bytes; i++)
            if (length + 1 < size)
                text[length++] = piece[i];
    text[length] = 0;
}

GP_HOST uint64_t gp_read_number(gp_reader *r)
{
    uint64_t number = 0;
    int digits = 0;
    gp_skip_space(r);
    for (int c; (c = gp_peek(r)) >= '0' && c <= '9' && digits < 19; digits++, r->used++)
        number = number * 10 + (uint64_t)(c - '0');
    if (digits == 0)
        gp_broken(r, "a number is missing");
    return number;
}

/* Skips any value: metadata and unknown fields. Strings are parsed, since they may contain
 * brackets. */
GP_HOST void gp_skip_value(gp_reader *r)
{
    int depth = 0;
    do {
        char text[2];
        int c = gp_skip_space(r);
        const int opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if (c == 0)
            gp_broken(r, "its header is truncated");
        else if (depth == 0 && (closes || c == ','))
            gp_broken(r, "a value is missing");
        else if (c == '"')
            gp_read_string(r, text, sizeof text);
        else
            r->used++;
        depth += opens - closes;
        c = gp_skip_space(r);
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return;
    } while (r->code == GP_OK);
}

/* ---- Names: of any length, so they are read again from the file
 * ------------------------------- */

/* Leaves room for a number above each hash. */
GP_HOST uint64_t gp_name_hash(uint64_t hash)
{
    return hash >> 1;
}

GP_HOST void gp_read_name(gp_reader *r, gp_entry *e)
{
    char piece[3];
    uint64_t hash = GP_HASH_START;
    gp_skip_space(r);
    e->at = r->at - (r->filled - r->used);
    gp_expect(r, '"');
    for (int bytes; (bytes = gp_read_char(r, piece)) > 0; e->length += (uint64_t)bytes)
        hash = gp_hash_bytes(hash, piece, (size_t)bytes);
    e->hash = gp_name_hash(hash);
}

/* A second reader at the name of an entry. */
GP_HOST gp_reader gp_at_name(const gp_reader *r, const gp_entry *e)
{
    gp_reader again = *r;
    again.at = e->at;
    again.used = again.filled = 0;
    return again;
}

/* Enough of it for a message. */
GP_HOST gp_brief gp_name_text(const gp_reader *r, const gp_entry *e)
{
    gp_brief brief;
    gp_reader again = gp_at_name(r, e);
    gp_read_string(&again, brief.text, sizeof brief.text);
    return brief;
}

GP_HOST int gp_name_is(const gp_reader *r, const gp_entry *e, const char *name)
{
    const size_t length = strlen(name);
    char piece[3];
    size_t same = 0;
    if (length != e->length || gp_name_hash(gp_hash_bytes(GP_HASH_START, name, length)) != e->hash)
        return 0;
    gp_reader again = gp_at_name(r, e);
    gp_expect(&again, '"');
    for (int bytes; (bytes = gp_read_char(&again, piece)) > 0; same += (size_t)bytes)
        if (same + (size_t)bytes > length || memcmp(name + same, piece, (size_t)bytes) != 0)
            return 0;
    return same == length;
}

/* The index of the model's tensor with this name; count if there is none. */
GP_HOST size_t gp_find_item(gp_reader *r, const gp_entry *e)
{
    const size_t count = r->items->count;
    for (size_t k = 0; k < count; k++) {
        const size_t i = (r->next + k) % count;
        if (gp_name_is(r, e, r->items->item(r->items->model, i).name)) {
            r->next = i + 1;
            return i;
        }
    }
    return count;
}

/* ---- One tensor ----------------------------------------------------------------------------- */

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
        for (int more = gp_open(r, '[', ']'); more; more = gp_more(r, ']')) {
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
        gp_skip_value(r);
    }
    if (e->fields & bit)
        gp_broken(r, "a field of a tensor occurs twice");
    e->fields |= bit;
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
    } else if (e->end - e->begin != t->bytes) {
        gp_complain(r, GP_EFORMAT, t->name, "its place in the file does not have its size");
    } else if (GP_WAY(file_maps, r->items->mapped)) {
        if ((uintptr_t)(r->items->mapped + r->data + e->begin) % gp_size(t->dtype))
            gp_complain(r, GP_ETENSOR, t->name, "is misaligned in memory");
    } else if (!t->data) {
        gp_complain(r, GP_ETENSOR, t->name, "has no memory bound to it");
    }
}

/* Its bytes are within the file, whoever it belongs to. */
GP_HOST void gp_check_extent(gp_reader *r, const gp_entry *e)
{
    const gp_brief name = gp_name_text(r, e);
    if (e->fields != 7)
        gp_complain(r, GP_EFORMAT, name.text, "the file lacks its dtype, shape or place");
    else if (e->end < e->begin)
        gp_complain(r, GP_EFORMAT, name.text, "its place in the file does not have its size");
    else if (e->end > r->file_end - r->data)
        gp_complain(r, GP_EFORMAT, r->path, "the file is truncated: %s ends after it", name.text);
    if (e->begin == e->end)
        return;
    r->unsorted |= e->begin != r->tiled;
    r->tiled = e->end;
    r->tensors++;
}

/* Inserts a key among the smallest. */
GP_HOST void gp_take(gp_window *w, uint64_t key, uint64_t value)
{
    size_t at = w->count;
    if (key < w->from)
        return;
    while (at > 0 && w->at[at - 1].key > key)
        at--;
    if (at > 0 && w->at[at - 1].key == key)
        w->twice = 1;
    if (at == GP_WINDOW)
        return;
    w->count += w->count < GP_WINDOW;
    memmove(w->at + at + 1, w->at + at, (w->count - at - 1) * sizeof *w->at);
    w->at[at].key = key;
    w->at[at].value = value;
}

/* For passes about the model's own tensors: a file may hold more. */
GP_HOST void gp_use_item(gp_reader *r, const gp_entry *e, int pass)
{
    const size_t i = gp_find_item(r, e);
    if (i == r->items->count)
        return;
    const gp_item t = r->items->item(r->items->model, i);
    unsigned char *seen = &r->items->seen[i / 8];
    if (pass == GP_PASS_LOAD) {
        if (GP_WAY(file_maps, r->items->mapped))
            r->items->bind(r->items->model, i, r->items->mapped + r->data + e->begin);
        else if (!gp_read_data(r->file, &t, r->data + e->begin))
            gp_complain(r, GP_EFILE, r->path, "%s cannot be read", gp_shorten(t.name).text);
        return;
    }
    if (*seen & 1 << i % 8)
        gp_complain(r, GP_EFORMAT, t.name, "occurs twice in the file");
    gp_check_item(r, e, &t);
    *seen |= (unsigned char)(1 << i % 8);
}

/* ---- The header ----------------------------------------------------------------------------- */

/* A number as text; anything else is ignored. */
GP_HOST void gp_read_note(gp_reader *r, const char *name)
{
    char text[24];
    uint64_t number = 0;
    size_t digits = 0;
    gp_read_string(r, text, sizeof text);
    for (; text[digits] >= '0' && text[digits] <= '9'; digits++) {
        const uint64_t digit = (uint64_t)(text[digits] - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return;
        number = number * 10 + digit;
    }
    for (size_t i = 0; i < r->items->notes && digits > 0 && !text[digits]; i++)
        if (strcmp(r->items->note[i].name, name) == 0)
            r->items->note[i].number = number;
}

GP_HOST void gp_read_metadata(gp_reader *r, int load)
{
    if (!load || gp_skip_space(r) != '{') {
        gp_skip_value(r);
        return;
    }
    for (int more = gp_open(r, '{', '}'); more; more = gp_more(r, '}')) {
        char name[32];
        gp_read_string(r, name, sizeof name);
        gp_expect(r, ':');
        if (gp_skip_space(r) == '"')
            gp_read_note(r, name);
        else
            gp_skip_value(r);
    }
}

GP_HOST void gp_read_entry(gp_reader *r, int pass)
{
    gp_entry e = {.at = 0};
    gp_read_name(r, &e);
    gp_expect(r, ':');
    const int metadata = r->code == GP_OK && gp_name_is(r, &e, "__metadata__");
    if (metadata)
        gp_read_metadata(r, pass == GP_PASS_LOAD);
    else
        for (int more = gp_open(r, '{', '}'); more; more = gp_more(r, '}'))
            gp_read_field(r, &e);
    if (pass == GP_PASS_CHECK && !metadata && r->code == GP_OK)
        gp_check_extent(r, &e);
    if (r->code != GP_OK)
        return;
    if (pass == GP_PASS_NAMES)
        gp_take(r->window, e.hash, 0);
    else if (pass == GP_PASS_EXTENTS && e.begin < e.end)
        gp_take(r->window, e.begin, e.end);
    else if (pass != GP_PASS_EXTENTS && !metadata)
        gp_use_item(r, &e, pass);
}

GP_HOST void gp_read_header(gp_reader *r, int pass)
{
    r->at = 8;
    r->used = r->filled = r->next = 0;
    r->hash = GP_HASH_START;
    for (int more = gp_open(r, '{', '}'); more; more = gp_more(r, '}'))
        gp_read_entry(r, pass);
    if (gp_skip_space(r) != 0)
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
                        gp_shorten(r->path).text);
}

GP_HOST void gp_read_window(gp_reader *r, uint64_t from, int pass)
{
    r->window->from = from;
    r->window->count = 0;
    gp_read_header(r, pass);
}

GP_HOST void gp_check_names(gp_reader *r)
{
    const gp_window *w = r->window;
    uint64_t from = 0;
    do {
        gp_read_window(r, from, GP_PASS_NAMES);
        if (w->twice)
            gp_complain(r, GP_EFORMAT, r->path, "a name occurs twice in the file");
        from = w->count ? w->at[w->count - 1].key + 1 : 0;
    } while (r->code == GP_OK && w->count == GP_WINDOW);
}

/* Tensors that are not in the order of their bytes are sorted, a window at a time; if as many as
 * there are tensors follow one another without a gap, no two overlap. */
GP_HOST void gp_check_extents(gp_reader *r)
{
    const gp_window *w = r->window;
    const uint64_t end = r->file_end - r->data;
    uint64_t at = r->unsorted ? 0 : r->tiled, count = r->unsorted ? 0 : r->tensors;
    while (r->code == GP_OK && r->unsorted && at < end) {
        gp_read_window(r, at, GP_PASS_EXTENTS);
        for (size_t i = 0; i < w->count && w->at[i].key == at; i++, count++)
            at = w->at[i].value;
        if (w->count == 0 || w->at[w->count - 1].value != at)
            break;
    }
    if (w->twice || (count < r->tensors && at >= end))
        gp_complain(r, GP_EFORMAT, r->path, "two tensors share bytes");
    else if (count < r->tensors)
        gp_complain(r, GP_EFORMAT, r->path, "tensors share bytes or leave some out after byte %llu",
                    (unsigned long long)at);
    else if (at < end)
        gp_complain(r, GP_EFORMAT, r->path, "%llu bytes follow the last tensor",
                    (unsigned long long)(end - at));
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

/* status: fstat of a file that is not mapped. */
GP_HOST void gp_read_items(gp_reader *r, const struct stat *status)
{
    gp_window window = {.from = 0};
    r->window = &window;
    r->file_end = status ? (uint64_t)status->st_size : r->items->mapped_bytes;
    gp_read_length(r);
    gp_read_header(r, GP_PASS_CHECK);
    const uint64_t hash = r->hash;
    gp_check_seen(r);
    gp_check_names(r);
    gp_check_extents(r);
    gp_read_header(r, GP_PASS_LOAD);
    if (r->hash != hash || (status && !gp_is_unchanged(r->file, status)))
        gp_complain(r, GP_EFILE, r->path, "was changed while it was read");
    r->window = NULL;
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
    else
        gp_read_items(&r, &status);
    if (r.file >= 0)
        close(r.file);
    if (r.code == GP_OK)
        gp_no_detail(items);
    return r.code;
}

/* The same for a mapped file: its tensors are bound in place. */
GP_HOST int gp_map(const gp_items *items)
{
    gp_reader r = {.file = -1};
    r.path = "the mapped file";
    r.items = items;
    gp_read_items(&r, NULL);
    if (r.code == GP_OK)
        gp_no_detail(items);
    return r.code;
}

#endif
