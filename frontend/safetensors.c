/* Reads and writes headers of safetensors files: see safetensors.h. Nothing of a header is
 * believed: places outside the file, shapes that do not have the bytes they are given, and bytes of
 * two tensors or of none are refused. */
#include "frontend/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_HEADER = 100 << 20 }; /* bytes; the format's own limit is about this */

typedef struct {
    Arena *arena;
    const char *data; /* after the header */
    uint64_t bytes;
    const char **fault;
} Reader;

__attribute__((format(printf, 2, 3))) static bool fail(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *r->fault = arena_vprintf(r->arena, format, args);
    va_end(args);
    return false;
}

/* ---- One tensor ------------------------------------------------------------------------------ */

static Dtype find_dtype(const char *id)
{
    Dtype dtype = F32;
    while (dtype < DTYPES && strcmp(dtype_row(dtype)->id, id) != 0)
        dtype++;
    return dtype;
}

static bool is_size(const json_t *number)
{
    return json_is_integer(number) && json_integer_value(number) >= 0;
}

static bool read_shape(Reader *r, StoredTensor *t, const json_t *shape)
{
    uint64_t count = 1;
    bool empty = false;
    t->rank = (int)json_array_size(shape);
    for (size_t d = 0; d < json_array_size(shape); d++) {
        const json_t *dim = json_array_get(shape, d);
        if (!is_size(dim))
            return fail(r, "%s: a dimension that is no size", t->name);
        uint64_t size = (uint64_t)json_integer_value(dim);
        if (d < MAX_RANK)
            t->dim[d] = (int64_t)size;
        empty |= size == 0;
        if (size > 0 && count > UINT64_MAX / 16 / size)
            return fail(r, "%s: its shape has more numbers than fit in memory", t->name);
        count *= size > 0 ? size : 1;
    }
    count = empty ? 0 : count;
    if (t->dtype < DTYPES && count * dtype_size(t->dtype) != t->bytes)
        return fail(r, "%s: %s takes %llu bytes, but its place in the file has %llu", t->name,
                    stored_text(r->arena, t), (unsigned long long)(count * dtype_size(t->dtype)),
                    (unsigned long long)t->bytes);
    return true;
}

static bool read_tensor(Reader *r, StoredTensor *t, const json_t *entry)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *place = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(place, 0), *end = json_array_get(place, 1);
    if (!dtype || !json_is_array(shape) || json_array_size(shape) > 1000 ||
        json_array_size(place) != 2)
        return fail(r, "%s: its dtype, shape or data_offsets are missing", t->name);
    if (!is_size(begin) || !is_size(end) || json_integer_value(end) < json_integer_value(begin))
        return fail(r, "%s: its data_offsets are wrong", t->name);
    if ((uint64_t)json_integer_value(end) > r->bytes)
        return fail(r, "the file is truncated: %s ends after it", t->name);
    t->dtype_text = arena_copy(r->arena, dtype, strlen(dtype));
    t->dtype = find_dtype(dtype);
    t->data = r->data + json_integer_value(begin);
    t->bytes = (uint64_t)(json_integer_value(end) - json_integer_value(begin));
    return read_shape(r, t, shape);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const StoredTensor *const *x = a, *const *y = b;
    return (*x)->data != (*y)->data ? ((*x)->data < (*y)->data ? -1 : 1)
                                    : ((*x)->bytes > (*y)->bytes) - ((*x)->bytes < (*y)->bytes);
}

/* Each byte after the header belongs to one tensor. */
static bool check_places(Reader *r, const Safetensors *file)
{
    const StoredTensor **sorted = ARENA_ARRAY(r->arena, const StoredTensor *, file->count + 1);
    for (size_t i = 0; i < file->count; i++)
        sorted[i] = &file->tensor[i];
    qsort(sorted, file->count, sizeof *sorted, by_place);
    const char *at = r->data;
    for (size_t i = 0; i < file->count; i++) {
        if (sorted[i]->bytes > 0 && sorted[i]->data < at)
            return fail(r, "%s and %s share bytes", sorted[i - 1]->name, sorted[i]->name);
        if (sorted[i]->data > at)
            return fail(r, "%llu bytes before %s are of no tensor",
                        (unsigned long long)(sorted[i]->data - at), sorted[i]->name);
        at = sorted[i]->data + sorted[i]->bytes;
    }
    if (at != r->data + r->bytes)
        return fail(r, "%llu bytes follow the last tensor",
                    (unsigned long long)(r->data + r->bytes - at));
    return true;
}

static Safetensors *read_entries(Reader *r, json_t *entries)
{
    Safetensors *file = ARENA_NEW(r->arena, Safetensors);
    const char *name;
    json_t *entry;
    file->tensor = ARENA_ARRAY(r->arena, StoredTensor, json_object_size(entries) + 1);
    file->names = names_new(r->arena);
    json_object_foreach(entries, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        StoredTensor *t = &file->tensor[file->count];
        t->name = arena_copy(r->arena, name, strlen(name));
        if (!read_tensor(r, t, entry))
            return NULL;
        *names_at(file->names, t->name) = (uint32_t)file->count++;
    }
    return check_places(r, file) ? file : NULL;
}

const Safetensors *safetensors_read(Arena *arena, Text file, const char **fault)
{
    Reader r = {.arena = arena, .fault = fault};
    uint64_t length = 0;
    json_error_t error;
    *fault = NULL;
    for (int i = 7; i >= 0 && file.length >= 8; i--)
        length = length << 8 | (unsigned char)file.text[i];
    if (file.length < 8 || length > file.length - 8) {
        fail(&r, "not a safetensors file, or truncated: its header would end after it");
        return NULL;
    }
    if (length > MOST_HEADER) {
        fail(&r, "its header would have %llu bytes; more than %d are not read",
             (unsigned long long)length, MOST_HEADER);
        return NULL;
    }
    json_set_alloc_funcs(memory_take, free);
    json_t *entries = json_loadb(file.text + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    r.data = file.text + 8 + length;
    r.bytes = file.length - 8 - length;
    Safetensors *read = NULL;
    if (!entries)
        fail(&r, "not a safetensors file: its header is no JSON: %s", error.text);
    else if (!json_is_object(entries))
        fail(&r, "not a safetensors file: its header is no JSON object");
    else
        read = read_entries(&r, entries);
    json_decref(entries);
    return read;
}

const StoredTensor *safetensors_find(const Safetensors *file, const char *name)
{
    uint32_t place = names_find(file->names, name);
    return place == UINT32_MAX ? NULL : &file->tensor[place];
}

char *stored_text(Arena *arena, const StoredTensor *t)
{
    char *text = arena_printf(arena, "%s[", t->dtype_text);
    for (int d = 0; d < t->rank && d < MAX_RANK; d++)
        text = arena_printf(arena, "%s%s%lld", text, d ? ", " : "", (long long)t->dim[d]);
    return arena_printf(arena, "%s%s]", text, t->rank > MAX_RANK ? ", ..." : "");
}

/* ---- Writing --------------------------------------------------------------------------------- */

Text safetensors_header(Arena *arena, const Value *const *value, size_t count)
{
    uint64_t offset = 0;
    json_set_alloc_funcs(memory_take, free);
    json_t *entries = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *shape = json_array();
        for (int d = 0; d < value[i]->rank; d++)
            json_array_append_new(shape, json_integer(value[i]->dim[d]));
        uint64_t end = offset + value_bytes(value[i]);
        json_object_set_new(entries, value[i]->name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                                      dtype_row((Dtype)value[i]->dtype)->id, "shape", shape,
                                      "data_offsets", (json_int_t)offset, (json_int_t)end));
        offset = end;
    }
    size_t length = json_dumpb(entries, NULL, 0, JSON_COMPACT);
    size_t padded = (length + 7) / 8 * 8; /* the tensors begin on a multiple of 8 */
    char *text = arena_alloc(arena, 8 + padded + 1);
    for (int i = 0; i < 8; i++)
        text[i] = (char)((uint64_t)padded >> 8 * i);
    memset(text + 8, ' ', padded);
    json_dumpb(entries, text + 8, length, JSON_COMPACT);
    json_decref(entries);
    return (Text){text, 8 + padded};
}

bool safetensors_may_replace(const char *path, const char *mark)
{
    char start[256];
    size_t length = 8 + strlen(mark);
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR; /* it does not exist, which the write reports */
    bool ours = length <= sizeof start && read(file, start, length) == (ssize_t)length &&
                memcmp(start + 8, mark, length - 8) == 0;
    close(file);
    return ours;
}
