/* Parameters in a file: the safetensors format. Eight bytes of length, a JSON header that says
 * for each tensor its dtype, shape and place, then the bytes, little-endian. file_save.h writes
 * such files, file_load.h reads them; nothing is allocated. */
#ifndef GP_FILE_H
#define GP_FILE_H

#include "replace.h"

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
    char *detail;        /* what went wrong, in words */
    size_t detail_size;
    const unsigned char *mapped; /* the file in memory; NULL: it is read */
    size_t mapped_bytes;
    void (*bind)(const void *model, size_t i, const unsigned char *at); /* takes a tensor of it */
} gp_items;

/* What went wrong, in words. Untouched where there is nothing to clear: threads may save one model
 * at once. */
#define GP_DETAIL(items, ...) snprintf((items)->detail, (items)->detail_size, __VA_ARGS__)
GP_HOST void gp_no_detail(const gp_items *items)
{
    if (items->detail[0])
        items->detail[0] = 0;
}

/* A name or path that leaves room for what is said of it: the middle of a long one is left out. */
typedef struct {
    char text[80];
} gp_brief;

GP_HOST gp_brief gp_shorten(const char *name)
{
    gp_brief brief;
    const size_t length = strlen(name), half = sizeof brief.text / 2 - 2;
    if (length < sizeof brief.text)
        memcpy(brief.text, name, length + 1);
    else
        snprintf(brief.text, sizeof brief.text, "%.*s...%s", (int)half, name, name + length - half);
    return brief;
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

#endif
