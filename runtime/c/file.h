/* Parameters in a file: the safetensors format. Eight bytes of length, a JSON header that gives the
 * dtype, shape and offsets of each tensor, then the bytes, little-endian. file_save.h writes such
 * files, file_load.h reads them; nothing is allocated. */
#ifndef GP_FILE_H
#define GP_FILE_H

#include "replace.h"

enum { GP_EFILE = 4, GP_EFORMAT = 5, GP_ETENSOR = 6 };

/* One tensor of a file. */
typedef struct {
    const char *name;
    int dtype, rank;
    const int64_t *dim;
    void *data;
    size_t bytes;
#ifdef GP_SHARDS
    size_t rows;                /* of which this rank has a part each; 0: it has all of it */
    size_t before, own, stride; /* bytes of a row: before that part, of it; to the next in memory */
#endif
#ifdef GP_CUDA
    void *stream; /* the cudaStream_t that its bytes are copied on */
#endif
} gp_item;

/* A number in the metadata, which safetensors stores as text: "step":"1200". */
typedef struct {
    const char *name;
    uint64_t number; /* loading: unchanged where the file does not have it */
} gp_note;

/* What to load or save. */
typedef struct {
    gp_item (*item)(const void *model, size_t i);
    const void *model;
    size_t count;
    size_t needed; /* loading: those after the first `needed` may be missing, all together */
    gp_note *note;
    size_t notes;
    unsigned char *seen; /* loading: a bit for each tensor, all 0 */
    char *detail;        /* the error message */
    size_t detail_size;
#ifndef GP_NO_MAP
    const unsigned char *mapped; /* a mapped file; NULL: it is read */
    size_t mapped_bytes;
    void (*bind)(const void *model, size_t i, const unsigned char *at); /* binds a tensor of it */
#endif
#ifdef GP_RANKS
    void (*look)(const void *model); /* saving: now and then, since other ranks wait; NULL */
#endif
} gp_items;

/* Clears the error message, and writes nothing where it is clear: threads may save one model
 * concurrently. */
#define GP_DETAIL(items, ...) snprintf((items)->detail, (items)->detail_size, __VA_ARGS__)
GP_HOST void gp_no_detail(const gp_items *items)
{
    if (items->detail[0])
        items->detail[0] = 0;
}

/* A name or path for a message: the end of a long one. */
GP_HOST const char *gp_brief(const char *name)
{
    const size_t length = strlen(name), most = 79;
    return length <= most ? name : name + length - most;
}

GP_HOST const char *gp_dtype_name(int dtype)
{
    static const char *const name[] = {"F32",  "F16", "BF16", "I32", "I64", "U8",
                                       "BOOL", "I8",  "U16",  "U32", "F64"};
    return name[dtype];
}

/* All of the bytes, or false. */
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

#ifdef GP_CUDA
/* Copies so many bytes of a tensor to and from the file, through a host buffer: cuda/model.cuh. */
GP_HOST int gp_write_part(int file, const gp_item *t, size_t from, size_t bytes);
GP_HOST int gp_read_part(int file, const gp_item *t, size_t to, size_t bytes, uint64_t offset);
#else
/* Copies so many bytes of a tensor to and from the file. */
#define gp_write_part(file, t, from, bytes) \
    gp_write_all(file, (const char *)(t)->data + (from), bytes)
#define gp_read_part(file, t, to, bytes, offset) \
    gp_read_at(file, (char *)(t)->data + (to), bytes, offset)
#endif
#ifdef GP_SHARDS
GP_HOST int gp_read_data(int file, const gp_item *t, uint64_t offset)
{
    int good = t->rows > 0 || gp_read_part(file, t, 0, t->bytes, offset);
    for (size_t row = 0; row < t->rows && good && t->own > 0; row++)
        good = gp_read_part(file, t, row * t->stride, t->own,
                            offset + row * (t->bytes / t->rows) + t->before);
    return good;
}
#else
#define gp_read_data(file, t, offset) gp_read_part(file, t, 0, (t)->bytes, offset)
#endif

#endif
