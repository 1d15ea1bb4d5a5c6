/* From a tensor of a file to a parameter: a view of it is read in the order of the parameter, in
 * rows, and converted on the way. Bytes in the file need not be aligned. */
#include "frontend/command/weights.h"
#include "runtime/c/init.h"
#include "runtime/c/stored.h"

#include <math.h>
#include <string.h>

enum { BUFFER = 1 << 16 };

/* ---- Numbers --------------------------------------------------------------------------------- */

static double load_real(Dtype dtype, const char *from)
{
    float single;
    double real;
    uint16_t half;
    switch (dtype) {
    case F16:
    case BF16:
        memcpy(&half, from, sizeof half);
        return dtype == F16 ? (double)gp_from_f16(half) : (double)gp_from_bf16(half);
    case F64:
        memcpy(&real, from, sizeof real);
        return real;
    default:
        memcpy(&single, from, sizeof single);
        return (double)single;
    }
}

static void store_real(Dtype dtype, double real, char *to)
{
    float single = (float)real;
    uint16_t half = dtype == F16 ? gp_to_f16(real) : gp_to_bf16(real);
    switch (dtype) {
    case F16:
    case BF16:
        memcpy(to, &half, sizeof half);
        break;
    case F64:
        memcpy(to, &real, sizeof real);
        break;
    default:
        memcpy(to, &single, sizeof single);
    }
}

/* The lowest byte stands first. */
static int64_t load_whole(Dtype dtype, const char *from)
{
    size_t size = dtype_size(dtype);
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= (uint64_t)(unsigned char)from[i] << 8 * i;
    bool negative = dtype_row(dtype)->low < 0 && bits >> (8 * size - 1) & 1;
    return (int64_t)(negative && size < 8 ? bits | UINT64_MAX << 8 * size : bits);
}

static void store_whole(Dtype dtype, int64_t number, char *to)
{
    for (size_t i = 0; i < dtype_size(dtype); i++)
        to[i] = (char)((uint64_t)number >> 8 * i);
}

static void convert_row(Dtype have, const char *from, int64_t stride, int64_t count, Dtype want,
                        char *to)
{
    const size_t size = dtype_size(want);
    const int64_t step = stride * (int64_t)dtype_size(have);
    for (int64_t i = 0; i < count; i++, from += step, to += size)
        if (have == want)
            memcpy(to, from, size);
        else if (dtype_is_float(want))
            store_real(want, load_real(have, from), to);
        else
            store_whole(want, load_whole(have, from), to);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Goes through a view: `index` counts all axes but the last; false after the last row. */
static bool next_row(const View *view, int64_t index[MAX_RANK])
{
    for (int d = view->rank - 2; d >= 0; d--) {
        if (++index[d] < view->dim[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static int64_t row_begin(const View *view, const int64_t index[MAX_RANK])
{
    int64_t at = view->offset;
    for (int d = 0; d + 1 < view->rank; d++)
        at += index[d] * view->stride[d];
    return at;
}

void convert_write(FILE *to, const Want *want)
{
    const StoredTensor *t = want->origin.from->tensor;
    const View *view = &want->origin.view;
    const Dtype dtype = (Dtype)want->value->dtype;
    const int64_t size = (int64_t)dtype_size(t->dtype);
    if (t->dtype == dtype && view_is_dense(view)) {
        fwrite(t->data + view->offset * size, 1, (size_t)value_bytes(want->value), to);
        return;
    }
    char buffer[BUFFER];
    int64_t index[MAX_RANK] = {0}, most = BUFFER / (int64_t)dtype_size(dtype);
    int64_t length = view->rank ? view->dim[view->rank - 1] : 1;
    int64_t stride = view->rank ? view->stride[view->rank - 1] : 1;
    do
        for (int64_t i = 0; i < length; i += most) {
            int64_t count = length - i < most ? length - i : most;
            convert_row(t->dtype, t->data + (row_begin(view, index) + i * stride) * size, stride,
                        count, dtype, buffer);
            fwrite(buffer, dtype_size(dtype), (size_t)count, to);
        }
    while (next_row(view, index));
}

/* ---- What cannot be -------------------------------------------------------------------------- */

/* A number that the dtype does not hold, as text; NULL: it does. */
static const char *misfit(Arena *arena, Dtype have, const char *from, Dtype want)
{
    if (!dtype_is_float(want)) {
        int64_t number = load_whole(have, from);
        return dtype_holds(want, (double)number) ? NULL
                                                 : arena_printf(arena, "%lld", (long long)number);
    }
    char stored[8];
    double real = load_real(have, from);
    store_real(want, real, stored);
    return !isfinite(real) || isfinite(load_real(want, stored)) ? NULL
                                                                : arena_printf(arena, "%g", real);
}

/* Only into less room can a number not fit. */
static bool may_misfit(Dtype have, Dtype want)
{
    return dtype_is_float(want) ? dtype_size(have) > dtype_size(want) || want == F16
                                : dtype_row(have)->low < dtype_row(want)->low ||
                                      dtype_row(have)->high > dtype_row(want)->high;
}

const char *convert_fault(Arena *arena, const Want *want)
{
    const StoredTensor *t = want->origin.from->tensor;
    const View *view = &want->origin.view;
    const Dtype dtype = (Dtype)want->value->dtype;
    if (t->dtype == DTYPES || dtype_is_float(t->dtype) != dtype_is_float(dtype))
        return arena_printf(arena, "%s is %s, which does not become %s", t->name, t->dtype_text,
                            dtype_name(dtype));
    if (t->dtype == dtype || !may_misfit(t->dtype, dtype))
        return NULL;
    int64_t index[MAX_RANK] = {0}, size = (int64_t)dtype_size(t->dtype);
    int64_t length = view->rank ? view->dim[view->rank - 1] : 1;
    int64_t stride = view->rank ? view->stride[view->rank - 1] : 1;
    do
        for (int64_t i = 0; i < length; i++) {
            const char *number = misfit(
                arena, t->dtype, t->data + (row_begin(view, index) + i * stride) * size, dtype);
            if (number)
                return arena_printf(arena, "%s has the number %s, which %s does not hold", t->name,
                                    number, dtype_name(dtype));
        }
    while (next_row(view, index));
    return NULL;
}

/* ---- What the model gives itself ------------------------------------------------------------- */

static double constant(const Init *init, int64_t i)
{
    if (init->kind == INIT_LIST)
        return init->list[i];
    return init->kind == INIT_ZEROS ? 0 : init->kind == INIT_ONES ? 1 : init->a;
}

void convert_reset(FILE *to, const Value *value, uint64_t seed)
{
    const Dtype dtype = (Dtype)value->dtype;
    const gp_run run = {.seed = seed};
    const Init *init = &value->init;
    const uint64_t key = gp_key(value->name);
    _Alignas(8) char buffer[BUFFER];
    const int64_t total = value_count(value), most = BUFFER / (int64_t)dtype_size(dtype);
    for (int64_t from = 0; from < total; from += most) {
        int64_t count = total - from < most ? total - from : most;
        if (init->kind == INIT_UNIFORM)
            gp_random_uniform(&run, key, init->a, init->b, (gp_real *)(void *)buffer, from, count);
        else if (init->kind == INIT_NORMAL)
            gp_random_normal(&run, key, init->a, init->b, (gp_real *)(void *)buffer, from, count);
        for (int64_t i = 0; i < count && init->kind != INIT_UNIFORM && init->kind != INIT_NORMAL;
             i++) {
            char *at = buffer + i * (int64_t)dtype_size(dtype);
            if (dtype_is_float(dtype))
                store_real(dtype, constant(init, from + i), at);
            else
                store_whole(dtype, (int64_t)constant(init, from + i), at);
        }
        fwrite(buffer, dtype_size(dtype), (size_t)count, to);
    }
}
