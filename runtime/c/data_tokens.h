/* Token ids of one long text, u16 or u32: as nanoGPT writes them, and as llm.c does, with a header
 * of 256 numbers in front. A sample is a window of it; a field is some of the window. */
#ifndef GP_DATA_TOKENS_H
#define GP_DATA_TOKENS_H

#include "data_array.h"

enum { GP_TOKENS_HEADER = 1024, GP_TOKENS_U16 = 20240520, GP_TOKENS_U32 = 20240801 };

/* llm.c's header, where there is one: its tokens are as many and as wide as it says. */
GP_HOST int gp_tokens_header(gp_data *d, uint64_t size, uint64_t *from, uint64_t *count)
{
    const char *name = gp_data_brief(d->path);
    const uint64_t width = gp_size(d->set->dtype);
    int32_t word[3] = {0};
    *from = (uint64_t)d->set->header;
    if (size < *from)
        return gp_data_fail(d->text, "%s: ends within its header of %llu bytes", name,
                            (unsigned long long)*from);
    *count = (size - *from) / width;
    const int llm = *from == 0 && size >= GP_TOKENS_HEADER &&
                    gp_read_at(d->array[0].file, word, sizeof word, 0) &&
                    (word[0] == GP_TOKENS_U16 || word[0] == GP_TOKENS_U32);
    if (llm) {
        if ((word[0] == GP_TOKENS_U16) != (d->set->dtype == GP_U16))
            return gp_data_fail(d->text, "%s: holds tokens of %d bytes, but data %s reads %s", name,
                                word[0] == GP_TOKENS_U16 ? 2 : 4, d->set->name,
                                gp_dtype_name(d->set->dtype));
        *from = GP_TOKENS_HEADER;
        *count = (size - *from) / width;
        if (word[2] < 0 || (uint64_t)word[2] > *count)
            return gp_data_fail(d->text, "%s: the file is cut short: %lld tokens of %lld", name,
                                (long long)*count, (long long)word[2]);
        *count = (uint64_t)word[2];
    } else if ((size - *from) % width) {
        return gp_data_fail(d->text, "%s: has %llu bytes: no whole number of tokens of %llu", name,
                            (unsigned long long)size, (unsigned long long)width);
    }
    return GP_OK;
}

GP_HOST int gp_tokens_open(gp_data *d)
{
    const gp_data_set *set = d->set;
    const int64_t stride = set->stride ? set->stride : set->window - 1;
    uint64_t size = 0, from = 0, count = 0;
    const int file = d->array[0].file = open(d->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return gp_data_errno(d->text, d->path);
    int code = gp_data_size(file, d->path, &size, d->text);
    if (code == GP_OK)
        code = gp_tokens_header(d, size, &from, &count);
    if (code != GP_OK)
        return code;
    if (count < (uint64_t)set->window)
        return gp_data_fail(d->text, "%s: has %llu tokens, fewer than a window of %lld",
                            gp_data_brief(d->path), (unsigned long long)count,
                            (long long)set->window);
    d->total = (int64_t)((count - (uint64_t)set->window) / (uint64_t)stride + 1);
    for (int f = 0; f < set->fields; f++) {
        if (f > 0 && (d->array[f].file = fcntl(file, F_DUPFD_CLOEXEC, 0)) < 0)
            return gp_data_errno(d->text, d->path);
        d->array[f].base = from + (uint64_t)set->field[f].at * gp_size(set->dtype);
        d->array[f].stride = (uint64_t)stride * gp_size(set->dtype);
    }
    return GP_OK;
}

static const gp_data_source gp_data_tokens = {gp_tokens_open, gp_data_array_read};

#endif
