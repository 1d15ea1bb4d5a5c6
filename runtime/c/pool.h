/* Pooling of images [N, C, H, W]: the largest or the mean of each window, and of whole planes.
 *
 * Outputs next to each other are made at once, as many as a vector has, where their windows have
 * all columns inside; those at the edges one by one. */
#ifndef GP_POOL_H
#define GP_POOL_H

#include "vector.h"
#include "window.h"

typedef struct {
    int64_t kernel[2], stride[2], pad[4]; /* pad: top, left, bottom, right */
} gp_maxpool2d_attr;

typedef struct {
    int64_t kernel[2], stride[2], pad[4], count_include_pad;
} gp_avgpool2d_attr;

enum {
    GP_POOL_BAND = 4096, /* outputs of some rows, made aside and then stored */
    GP_POOL_SOON = 128,
    GP_POOL_LATER = 6144 /* how far ahead memory is asked for */
};

typedef struct {
    const gp_tensor *x, *y;
    const gp_avgpool2d_attr *mean; /* NULL: the largest */
    int64_t kernel[2], stride[2], pad[2];
    gp_range whole;      /* outputs of a row whose windows have all columns inside */
    int64_t rows, bands; /* of a band; of a plane */
    int is_max, streams;
} gp_pool;

GP_FUNCTION gp_range gp_pool_whole(int64_t outputs, int64_t stride, int64_t pad, int64_t kernel,
                                   int64_t size)
{
    return size < kernel ? (gp_range){outputs, outputs}
                         : gp_inside(0, outputs, stride, -pad, size - kernel + 1);
}

GP_FUNCTION gp_pool gp_pool_plan(const gp_call *c, const int64_t *kernel, const int64_t *stride,
                                 const int64_t *pad, const gp_avgpool2d_attr *mean)
{
    gp_pool v = {.x = &c->in[0], .y = &c->out[0], .mean = mean, .is_max = !mean};
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = kernel[i];
        v.stride[i] = stride[i];
        v.pad[i] = pad[i];
    }
    const int64_t height = v.y->dim[2], width = v.y->dim[3];
    v.whole = gp_pool_whole(width, stride[1], pad[1], kernel[1], v.x->dim[3]);
    v.rows = width < GP_POOL_BAND ? GP_POOL_BAND / width : 1;
    v.bands = (height + v.rows - 1) / v.rows;
    v.streams = width <= GP_POOL_BAND && v.y->stride[3] == 1 && v.y->stride[2] == width &&
                gp_streams(v.y->data, v.x->data, NULL, gp_count(v.y));
    return v;
}

/* Plane i (of N * C) of a tensor. */
GP_FUNCTION gp_real *gp_plane(const gp_tensor *t, int64_t i)
{
    return (gp_real *)t->data + i / t->dim[1] * t->stride[0] + i % t->dim[1] * t->stride[1];
}

/* The part of a window that begins at `first` that is inside. */
GP_FUNCTION gp_range gp_pool_inside(int64_t first, int64_t kernel, int64_t size)
{
    return (gp_range){first > 0 ? first : 0, first + kernel < size ? first + kernel : size};
}

/* Two vectors that follow in a while. */
GP_FUNCTION void gp_pool_ask(const gp_real *x)
{
#if defined(__GNUC__)
    __builtin_prefetch(x + GP_POOL_SOON);
    __builtin_prefetch(x + GP_POOL_SOON + GP_ZIP_LANES);
    __builtin_prefetch(x + GP_POOL_LATER, 0, 2);
    __builtin_prefetch(x + GP_POOL_LATER + GP_ZIP_LANES, 0, 2);
#else
    (void)x;
#endif
}

/* A NaN is kept. */
GP_FUNCTION gp_real gp_pool_join(gp_real old, gp_real v, int is_max)
{
    return !is_max ? old + v : ((v > old) | (v != v)) ? v : old;
}

/* One output, from the part of its window that is inside. Here as below, columns are joined, then
 * what they came to. */
GP_FUNCTION gp_real gp_pool_one(const gp_pool *v, const gp_real *plane, gp_range rows, int64_t at)
{
    const gp_range in = gp_pool_inside(at * v->stride[1] - v->pad[1], v->kernel[1], v->x->dim[3]);
    gp_real join = v->is_max ? -(gp_real)INFINITY : 0;
    for (int64_t j = in.from; j < in.to && rows.from < rows.to; j++) {
        const gp_real *from = plane + rows.from * v->x->stride[2] + j * v->x->stride[3];
        gp_real column = *from;
        for (int64_t i = rows.from + 1; i < rows.to; i++)
            column = gp_pool_join(column, *(from += v->x->stride[2]), v->is_max);
        join = gp_pool_join(join, column, v->is_max);
    }
    return join;
}

#if defined(__GNUC__)
#define GP_POOL_JOIN(type, join, v, is_max)                             \
    do {                                                                \
        typedef __typeof__((v) > (join)) mask;                          \
        const mask more = ((v) > (join)) | ((v) != (v));                \
        if (is_max)                                                     \
            join = (type)((more & (mask)(v)) | (~more & (mask)(join))); \
        else                                                            \
            join += (v);                                                \
    } while (0)

/* n outputs that see a window of `rows` rows, `row` apart; the first begins at `from`. The last
 * vector may overlap the one before. */
#define GP_POOL_NEXT(name, type)                                                         \
    GP_FUNCTION void name(gp_real *restrict to, int64_t n, const gp_real *restrict from, \
                          int64_t rows, int64_t row, int64_t kernel, int is_max)         \
    {                                                                                    \
        const int64_t lanes = sizeof(type) / sizeof(gp_real);                            \
        for (int64_t i = 0; i < n; i += lanes) {                                         \
            const int64_t at = i + lanes <= n ? i : n - lanes;                           \
            type join = (type){0} - (is_max ? (gp_real)INFINITY : 0);                    \
            for (int64_t k = 0; k < kernel; k++) {                                       \
                const gp_real *next = from + at + k;                                     \
                type column = *(const type *)next;                                       \
                for (int64_t ki = 1; ki < rows; ki++) {                                  \
                    const type v = *(const type *)(next += row);                         \
                    GP_POOL_JOIN(type, column, v, is_max);                               \
                }                                                                        \
                GP_POOL_JOIN(type, join, column, is_max);                                \
            }                                                                            \
            *(type *)(to + at) = join;                                                   \
        }                                                                                \
    }
GP_POOL_NEXT(gp_pool_lanes, gp_lanes)
GP_POOL_NEXT(gp_pool_four, gp_four)
#undef GP_POOL_NEXT
#endif

#if defined(GP_SHUFFLES)
/* The same with a stride of 2, and two columns at least: two at a time are joined down the rows,
 * then taken apart. Where one is left it comes with the one before, which is skipped. */
#define GP_POOL_PAIRS(name, type, EVENS, ODDS)                                             \
    GP_FUNCTION void name(gp_real *restrict to, int64_t n, const gp_real *restrict from,   \
                          int64_t rows, int64_t row, int64_t kernel, int is_max)           \
    {                                                                                      \
        const int64_t lanes = sizeof(type) / sizeof(gp_real);                              \
        for (int64_t i = 0; i < n; i += lanes) {                                           \
            const int64_t at = i + lanes <= n ? i : n - lanes;                             \
            type join = (type){0} - (is_max ? (gp_real)INFINITY : 0);                      \
            for (int64_t k = 0; k < kernel; k += 2) {                                      \
                const int both = k + 1 < kernel;                                           \
                const gp_real *two = from + 2 * at + k - !both;                            \
                type a = *(const type *)two, b = *(const type *)(two + lanes);             \
                gp_pool_ask(two);                                                          \
                for (int64_t ki = 1; ki < rows; ki++) {                                    \
                    const gp_real *next = two + ki * row;                                  \
                    const type c = *(const type *)next, d = *(const type *)(next + lanes); \
                    GP_POOL_JOIN(type, a, c, is_max);                                      \
                    GP_POOL_JOIN(type, b, d, is_max);                                      \
                    gp_pool_ask(next);                                                     \
                }                                                                          \
                const type even = __builtin_shufflevector(a, b, EVENS);                    \
                const type odd = __builtin_shufflevector(a, b, ODDS);                      \
                if (both)                                                                  \
                    GP_POOL_JOIN(type, join, even, is_max);                                \
                GP_POOL_JOIN(type, join, odd, is_max);                                     \
            }                                                                              \
            *(type *)(to + at) = join;                                                     \
        }                                                                                  \
    }
GP_POOL_PAIRS(gp_pool_pairs, gp_zip_lanes, GP_EVENS, GP_ODDS)
GP_POOL_PAIRS(gp_pool_pairs_four, gp_four, GP_EVENS_4, GP_ODDS_4)
#undef GP_POOL_PAIRS
#endif
#undef GP_POOL_JOIN

/* Outputs of a row whose windows have all columns inside. Returns how many were made. */
GP_FUNCTION int64_t gp_pool_many(gp_real *to, int64_t n, const gp_real *from, int64_t rows,
                                 int64_t row, int64_t step, int64_t kernel, int is_max)
{
#if defined(GP_SHUFFLES)
    if (step == 2 && kernel > 1 && n >= 4) {
        if (n < GP_ZIP_LANES)
            gp_pool_pairs_four(to, n, from, rows, row, kernel, is_max);
        else if (is_max) /* known, so that it is no question within the loop */
            gp_pool_pairs(to, n, from, rows, row, kernel, 1);
        else
            gp_pool_pairs(to, n, from, rows, row, kernel, 0);
        return n;
    }
#endif
#if defined(__GNUC__)
    if (step == 1 && n >= 4) {
        if (n < GP_LANES)
            gp_pool_four(to, n, from, rows, row, kernel, is_max);
        else if (is_max)
            gp_pool_lanes(to, n, from, rows, row, kernel, 1);
        else
            gp_pool_lanes(to, n, from, rows, row, kernel, 0);
        return n;
    }
#endif
    (void)to, (void)n, (void)from, (void)rows, (void)row, (void)step, (void)kernel, (void)is_max;
    return 0;
}

/* How many places of a window that begins at `first` lie below `size` and not below `floor`. */
GP_FUNCTION int64_t gp_pool_count(int64_t first, int64_t kernel, int64_t floor, int64_t size)
{
    const int64_t from = first > floor ? first : floor;
    return (first + kernel < size ? first + kernel : size) - from;
}

/* Sums of windows, or the gradients of their means, by how many places they have: outputs at ..
 * at + n - 1 of a row, `out` apart. With count_include_pad the edges are those of the padded image.
 */
GP_FUNCTION void gp_pool_divide(const gp_avgpool2d_attr *a, const int64_t *size, int64_t row,
                                int64_t at, gp_real *restrict to, int64_t out, int64_t n)
{
    const int64_t all = a->count_include_pad, kernel = a->kernel[1], step = a->stride[1];
    const int64_t low = all ? -a->pad[1] : 0, high = size[1] + (all ? a->pad[3] : 0);
    const int64_t rows = gp_pool_count(row * a->stride[0] - a->pad[0], a->kernel[0],
                                       all ? -a->pad[0] : 0, size[0] + (all ? a->pad[2] : 0));
    const int64_t left = at * step - a->pad[1];
    int64_t from = 0, end = n; /* between them windows are whole */
    for (; from < n && left + from * step < low; from++)
        to[from * out] /= (gp_real)(rows * gp_pool_count(left + from * step, kernel, low, high));
    for (; end > from && left + (end - 1) * step + kernel > high; end--)
        to[(end - 1) * out] /=
            (gp_real)(rows * gp_pool_count(left + (end - 1) * step, kernel, low, high));
    const gp_real places = (gp_real)(rows * kernel);
    if (out == 1)
        for (int64_t i = from; i < end; i++)
            to[i] /= places;
    else
        for (int64_t i = from; i < end; i++)
            to[i * out] /= places;
}

/* A row of outputs, `out` apart. */
GP_FUNCTION void gp_pool_row(const gp_pool *v, const gp_real *plane, int64_t row, gp_real *to,
                             int64_t out)
{
    const gp_tensor *x = v->x;
    const gp_range whole = v->whole,
                   rows = gp_pool_inside(row * v->stride[0] - v->pad[0], v->kernel[0], x->dim[2]);
    int64_t done = whole.from;
    if (out == 1 && x->stride[3] == 1 && rows.from < rows.to)
        done +=
            gp_pool_many(to + whole.from, whole.to - whole.from,
                         plane + rows.from * x->stride[2] + whole.from * v->stride[1] - v->pad[1],
                         rows.to - rows.from, x->stride[2], v->stride[1], v->kernel[1], v->is_max);
    for (int64_t i = 0; i < whole.from; i++)
        to[i * out] = gp_pool_one(v, plane, rows, i);
    for (int64_t i = done; i < v->y->dim[3]; i++)
        to[i * out] = gp_pool_one(v, plane, rows, i);
    if (v->mean)
        gp_pool_divide(v->mean, x->dim + 2, row, 0, to, out, v->y->dim[3]);
}

/* Some rows of outputs of a plane: straight to y, or made aside and streamed. */
GP_FUNCTION void gp_pool_band(const gp_pool *v, int64_t plane, int64_t first, int64_t count)
{
    const gp_real *x = gp_plane(v->x, plane);
    gp_real *y = gp_plane(v->y, plane) + first * v->y->stride[2], band[GP_POOL_BAND];
    for (int64_t i = 0; i < count; i++)
        gp_pool_row(v, x, first + i, v->streams ? band + i * v->y->dim[3] : y + i * v->y->stride[2],
                    v->y->stride[3]);
    if (v->streams)
        gp_stream(y, band, count * v->y->dim[3], x + v->x->stride[1]);
    gp_stream_end();
}

GP_FUNCTION int gp_pool_run(const gp_run *run, gp_pool v)
{
    const int64_t units = v.y->dim[0] * v.y->dim[1] * v.bands, height = v.y->dim[2];
    (void)run; /* has a say only where there are threads */
    GP_PARALLEL(run, gp_count(v.x) > 32768)
    for (int64_t i = 0; i < units; i++) {
        const int64_t first = i % v.bands * v.rows;
        gp_pool_band(&v, i / v.bands, first, height - first < v.rows ? height - first : v.rows);
    }
    return GP_OK;
}

GP_KERNEL(maxpool2d)
{
    const gp_maxpool2d_attr *a = c->attr;
    return gp_pool_run(c->run, gp_pool_plan(c, a->kernel, a->stride, a->pad, NULL));
}

GP_KERNEL(avgpool2d)
{
    const gp_avgpool2d_attr *a = c->attr;
    return gp_pool_run(c->run, gp_pool_plan(c, a->kernel, a->stride, a->pad, a));
}

/* Where row i of a plane begins: the last axis is the row, the axes between count the rows. */
GP_FUNCTION int64_t gp_plane_row(const gp_tensor *x, int64_t i)
{
    int64_t at = 0;
    for (int d = x->rank - 1; d-- > 2; i /= x->dim[d])
        at += i % x->dim[d] * x->stride[d];
    return at;
}

/* The sum of n elements: in double, since a plane may be large, and in lanes of a fixed order. */
GP_FUNCTION double gp_stepped_sum(const gp_real *x, int64_t stride, int64_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)x[(i + k) * stride];
    for (; i < n; i++)
        sum += (double)x[i * stride];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

GP_KERNEL(global_avgpool)
{
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t length = x->rank > 2 ? x->dim[x->rank - 1] : 1;
    const int64_t stride = x->rank > 2 ? x->stride[x->rank - 1] : 1;
    const int64_t rows = gp_span(x, 2, x->rank) / length, planes = x->dim[0] * x->dim[1];
    GP_PARALLEL(c->run, gp_count(x) > 32768)
    for (int64_t i = 0; i < planes; i++) {
        double sum = 0;
        for (int64_t row = 0; row < rows; row++)
            sum += gp_stepped_sum(gp_plane(x, i) + gp_plane_row(x, row), stride, length);
        *gp_plane(y, i) = (gp_real)(sum / (double)(rows * length));
    }
    return GP_OK;
}

GP_KERNEL(global_maxpool)
{
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t length = x->rank > 2 ? x->dim[x->rank - 1] : 1;
    const int64_t stride = x->rank > 2 ? x->stride[x->rank - 1] : 1;
    const int64_t rows = gp_span(x, 2, x->rank) / length, planes = x->dim[0] * x->dim[1];
    GP_PARALLEL(c->run, gp_count(x) > 32768)
    for (int64_t i = 0; i < planes; i++) {
        gp_real best = -(gp_real)INFINITY;
        for (int64_t row = 0; row < rows; row++) {
            const gp_real *from = gp_plane(x, i) + gp_plane_row(x, row);
            for (int64_t j = 0; j < length; j++)
                best = from[j * stride] > best || from[j * stride] != from[j * stride]
                           ? from[j * stride]
                           : best;
        }
        *gp_plane(y, i) = best;
    }
    return GP_OK;
}

#endif
