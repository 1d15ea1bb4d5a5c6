/* Samples of fixed size, side by side in a file: .npy, idx, safetensors, records, and what other
 * files are turned into when they are first read. */
#ifndef GP_DATA_ARRAY_H
#define GP_DATA_ARRAY_H

#include "data_state.h"
#include "rng.h"

/* ---- Numbers in their range ----------------------------------------------------------------- */

/* Element i as an integer. Reals have no classes. */
GP_FUNCTION int64_t gp_data_integer(const unsigned char *at, int32_t dtype, int64_t i)
{
    int64_t i64;
    int32_t i32;
    uint32_t u32;
    uint16_t u16;
    switch (dtype) {
    case GP_I64:
        memcpy(&i64, at + 8 * i, sizeof i64);
        return i64;
    case GP_I32:
        memcpy(&i32, at + 4 * i, sizeof i32);
        return i32;
    case GP_U32:
        memcpy(&u32, at + 4 * i, sizeof u32);
        return u32;
    case GP_U16:
        memcpy(&u16, at + 2 * i, sizeof u16);
        return u16;
    case GP_I8:
        return ((const signed char *)at)[i];
    default:
        return at[i];
    }
}

/* Whether numbers are classes of the model. */
GP_FUNCTION int gp_data_check(const gp_data_field *field, const unsigned char *at, int64_t *which,
                              int64_t *number)
{
    const int64_t count = (int64_t)(gp_data_sample(field) / gp_size(field->dtype));
    if (field->classes == 0)
        return 1;
    for (int64_t i = 0; i < count; i++) {
        *which = i;
        *number = gp_data_integer(at, field->dtype, i);
        if (*number < 0 || *number >= field->classes)
            return 0;
    }
    return 1;
}

/* ---- Flips and shifts ----------------------------------------------------------------------- */

/* An image as rows: `planes` of them, each of `rows` rows of `columns` elements of `bytes`. */
typedef struct {
    int64_t planes, rows, columns;
    size_t bytes;
} gp_data_picture;

GP_FUNCTION gp_data_picture gp_data_picture_of(const gp_data_field *field)
{
    const int64_t *dim = field->dim;
    gp_data_picture p;
    const int chw = field->layout == GP_DATA_CHW;
    p.planes = chw ? dim[0] : 1;
    p.rows = dim[chw];
    p.columns = dim[chw + 1];
    p.bytes = gp_size(field->dtype) * (field->layout == GP_DATA_HWC ? (size_t)dim[2] : 1);
    return p;
}

GP_HOST_FAST void gp_data_flip(const gp_data_picture *p, unsigned char *at)
{
    for (int64_t row = 0; row < p->planes * p->rows; row++) {
        unsigned char *left = at + (size_t)(row * p->columns) * p->bytes;
        unsigned char *right = left + (size_t)(p->columns - 1) * p->bytes;
        for (; left < right; left += p->bytes, right -= p->bytes)
            for (size_t b = 0; b < p->bytes; b++) {
                const unsigned char other = left[b];
                left[b] = right[b];
                right[b] = other;
            }
    }
}

/* One row from where it was to where it goes, `across` columns to the right; zeros move in. */
GP_HOST_FAST void gp_data_shift_row(const gp_data_picture *p, const unsigned char *from,
                                    unsigned char *to, int64_t across)
{
    const size_t gap = (size_t)(across < 0 ? -across : across) * p->bytes;
    const size_t rest = (size_t)p->columns * p->bytes - gap;
    memmove(to + (across > 0 ? gap : 0), from + (across > 0 ? 0 : gap), rest);
    memset(to + (across > 0 ? 0 : rest), 0, gap);
}

/* Rows that are read later are written later: from the far end where it moves there. */
GP_HOST_FAST void gp_data_shift(const gp_data_picture *p, unsigned char *at, int64_t down,
                                int64_t across)
{
    const size_t row = (size_t)p->columns * p->bytes;
    for (int64_t plane = 0; plane < p->planes; plane++, at += (size_t)p->rows * row)
        for (int64_t i = 0; i < p->rows; i++) {
            const int64_t to = down > 0 ? p->rows - 1 - i : i, from = to - down;
            if (from < 0 || from >= p->rows)
                memset(at + (size_t)to * row, 0, row);
            else
                gp_data_shift_row(p, at + (size_t)from * row, at + (size_t)to * row, across);
        }
}

/* In [-most, most], and never the whole picture. */
GP_FUNCTION int64_t gp_data_draw_shift(uint32_t word, int64_t most, int64_t size)
{
    const int64_t limit = most < size ? most : size - 1;
    return (int64_t)(((uint64_t)word * (uint64_t)(2 * limit + 1)) >> 32) - limit;
}

/* The random changes of one field that is an image. */
GP_HOST_FAST void gp_data_augment(const gp_data *d, const gp_data_job *job, int f)
{
    const uint64_t seed = d->start.seed;
    const gp_data_picture p = gp_data_picture_of(&d->set->field[f]);
    if (d->set->shift)
        gp_data_shift(&p, job->field[f],
                      gp_data_draw_shift(gp_data_random(seed, job->number, GP_DRAW_DOWN),
                                         d->set->shift, p.rows),
                      gp_data_draw_shift(gp_data_random(seed, job->number, GP_DRAW_ACROSS),
                                         d->set->shift, p.columns));
    if (d->set->flip && gp_data_random(seed, job->number, GP_DRAW_FLIP) >> 31)
        gp_data_flip(&p, job->field[f]);
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* The file of a field, for a message. */
GP_HOST const char *gp_data_array_name(const gp_data *d, int f)
{
    return d->set->field[f].file ? d->set->field[f].file : gp_data_brief(d->path);
}

GP_HOST int gp_data_array_range(gp_data_worker *w, int f, int64_t sample, int64_t which,
                                int64_t number)
{
    const gp_data_field *field = &w->data->set->field[f];
    return gp_data_fail(w->text,
                        "%s: sample %lld: %s has %lld at place %lld, but the model has %lld "
                        "classes",
                        gp_data_array_name(w->data, f), (long long)sample, field->name,
                        (long long)number, (long long)which, (long long)field->classes);
}

GP_HOST_FAST int gp_data_array_read(gp_data_worker *w, const gp_data_job *job)
{
    const gp_data *d = w->data;
    for (int f = 0; f < d->set->fields; f++) {
        const gp_data_field *field = &d->set->field[f];
        const gp_data_array *array = &d->array[f];
        int64_t which = 0, number = 0;
        if (!gp_read_at(array->file, job->field[f], (size_t)gp_data_sample(field),
                        array->base + array->stride * (uint64_t)job->sample))
            return gp_data_fail(w->text, "%s: sample %lld cannot be read: the file is cut short",
                                gp_data_array_name(d, f), (long long)job->sample);
        if (!gp_data_check(field, job->field[f], &which, &number))
            return gp_data_array_range(w, f, job->sample, which, number);
        if (field->layout != GP_DATA_PLAIN && job->augment)
            gp_data_augment(d, job, f);
    }
    return GP_OK;
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* What a header says of an array: its dtype, dims with the number of samples in front, and where
 * its bytes begin. */
typedef struct {
    int32_t dtype, rank;
    int64_t dim[GP_MAX_RANK + 1];
    uint64_t base;
} gp_data_header;

/* The text of a shape with the samples in front, for messages. */
GP_HOST void gp_data_shape(char *text, size_t size, int dtype, int rank, const int64_t *dim)
{
    size_t length = (size_t)snprintf(text, size, "%s[", gp_dtype_name(dtype));
    for (int i = 0; i < rank && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, dim[i] < 0 ? "%sN" : "%s%lld",
                                   i ? ", " : "", (long long)dim[i]);
    if (length < size)
        snprintf(text + length, size - length, "]");
}

/* The array of a file is what field f wants; the file is as long as it says. */
GP_HOST int gp_data_accept(gp_data *d, int f, const gp_data_header *h, const char *path)
{
    const gp_data_field *field = &d->set->field[f];
    const uint64_t bytes = gp_data_sample(field);
    int same = h->dtype == field->dtype && h->rank == field->rank + 1;
    for (int i = 0; same && i < field->rank; i++)
        same = h->dim[i + 1] == field->dim[i];
    if (!same) {
        char have[100], want[100];
        int64_t dim[GP_MAX_RANK + 1] = {-1};
        memcpy(dim + 1, field->dim, sizeof field->dim);
        gp_data_shape(have, sizeof have, h->dtype, h->rank, h->dim);
        gp_data_shape(want, sizeof want, field->dtype, field->rank + 1, dim);
        return gp_data_fail(d->text, "%s: holds %s, but %s reads %s", gp_data_brief(path), have,
                            field->name, want);
    }
    uint64_t size = 0;
    const int code = gp_data_size(d->array[f].file, path, &size, d->text);
    if (code != GP_OK)
        return code;
    if (size < h->base || (bytes && (size - h->base) / bytes < (uint64_t)h->dim[0]))
        return gp_data_fail(d->text,
                            "%s: the file is cut short: it has %llu bytes, of %lld samples of "
                            "%llu after the first %llu",
                            gp_data_brief(path), (unsigned long long)size, (long long)h->dim[0],
                            (unsigned long long)bytes, (unsigned long long)h->base);
    if (f > 0 && d->total != h->dim[0])
        return gp_data_fail(d->text, "%s: has %lld samples, but %s has %lld", gp_data_brief(path),
                            (long long)h->dim[0], gp_data_array_name(d, 0), (long long)d->total);
    d->total = h->dim[0];
    d->array[f].base = h->base;
    d->array[f].stride = bytes;
    return GP_OK;
}

/* Opens the file at the path; `find` may look for it elsewhere too. */
GP_HOST int gp_data_find(gp_data *d, int f, char *path)
{
    d->array[f].file = open(path, O_RDONLY | O_CLOEXEC);
    return d->array[f].file < 0 ? gp_data_errno(d->text, path) : GP_OK;
}

/* Opens the file of each field and asks `read_header` what it holds. */
typedef int gp_data_find_file(gp_data *d, int f, char *path);
typedef int gp_data_read_header(gp_data *d, int f, const char *path, gp_data_header *h);

GP_HOST int gp_data_open_arrays(gp_data *d, gp_data_find_file *find,
                                gp_data_read_header *read_header)
{
    for (int f = 0; f < d->set->fields; f++) {
        char path[GP_DATA_PATH];
        gp_data_header h;
        memset(&h, 0, sizeof h);
        int code = gp_data_file(d, &d->set->field[f], path);
        if (code == GP_OK)
            code = find(d, f, path);
        if (code == GP_OK)
            code = read_header(d, f, path, &h);
        if (code == GP_OK)
            code = gp_data_accept(d, f, &h, path);
        if (code != GP_OK)
            return code;
    }
    return GP_OK;
}

#endif
