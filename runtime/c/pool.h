/* Pooling of images [N, C, H, W]: the largest or the mean of each window, and of whole planes.
 * A row of outputs is made at once: each place of the window adds one pass over it. */
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

enum { GP_POOL_COLUMNS = 512 }; /* of a stretch of input columns that is looked at in one go */

/* The larger of each output and what it sees through one place; a NaN is kept. Called with known
 * steps where they are small, so that the loop becomes vectors. */
GP_FUNCTION void gp_maxpool_join(gp_real *restrict to, const gp_real *restrict from, gp_range in,
                                 int64_t step, int64_t out)
{
    for (int64_t j = in.from; j < in.to; j++) {
        const gp_real v = from[j * step], old = to[j * out];
        to[j * out] = ((v > old) | (v != v)) ? v : old;
    }
}

/* most[i]: the largest of column first + i, over the rows from .. to - 1. */
GP_FUNCTION void gp_maxpool_columns(const gp_tensor *x, const gp_real *restrict plane,
                                    gp_range rows, int64_t first, int64_t n, gp_real *restrict most)
{
    const int64_t step = x->stride[3];
    for (int64_t i = 0; i < n; i++)
        most[i] = -(gp_real)INFINITY;
    for (int64_t row = rows.from; row < rows.to; row++) {
        const gp_real *from = plane + row * x->stride[2] + first * step;
        if (step == 1)
            gp_maxpool_join(most, from, (gp_range){0, n}, 1, 1);
        else
            gp_maxpool_join(most, from, (gp_range){0, n}, step, 1);
    }
}

/* Outputs at .. at + n - 1 of a row: columns first, then along them. */
GP_FUNCTION void gp_maxpool_stretch(const gp_tensor *x, const gp_tensor *y,
                                    const gp_maxpool2d_attr *a, const gp_real *restrict plane,
                                    gp_range rows, int64_t at, int64_t n, gp_real *restrict to)
{
    const int64_t step = a->stride[1], out = y->stride[3];
    const int64_t left = at * step - a->pad[1], right = (at + n - 1) * step - a->pad[1];
    const int64_t low = left > 0 ? left : 0;
    const int64_t high = right + a->kernel[1] < x->dim[3] ? right + a->kernel[1] : x->dim[3];
    gp_real most[GP_POOL_COLUMNS];
    for (int64_t j = 0; j < n; j++)
        to[j * out] = -(gp_real)INFINITY;
    for (int64_t from = low; from < high; from += GP_POOL_COLUMNS) {
        const int64_t some = high - from < GP_POOL_COLUMNS ? high - from : GP_POOL_COLUMNS;
        gp_maxpool_columns(x, plane, rows, from, some, most);
        for (int64_t kj = 0; kj < a->kernel[1]; kj++) {
            const int64_t first = left + kj - from; /* what output 0 sees, in `most` */
            const gp_range in = gp_inside(0, n, step, first, some);
            if (out == 1 && step == 1)
                gp_maxpool_join(to, most + first, in, 1, 1);
            else if (out == 1 && step == 2)
                gp_maxpool_join(to, most + first, in, 2, 1);
            else
                gp_maxpool_join(to, most + first, in, step, out);
        }
    }
}

GP_FUNCTION void gp_maxpool_row(const gp_tensor *x, const gp_tensor *y, const gp_maxpool2d_attr *a,
                                const gp_real *restrict plane, int64_t row, gp_real *restrict to)
{
    const int64_t top = row * a->stride[0] - a->pad[0], out = y->stride[3];
    const gp_range rows = {top > 0 ? top : 0,
                           top + a->kernel[0] < x->dim[2] ? top + a->kernel[0] : x->dim[2]};
    const int64_t spare = GP_POOL_COLUMNS - a->kernel[1];
    const int64_t some = spare < 0 ? 1 : spare / a->stride[1] + 1;
    for (int64_t at = 0; at < y->dim[3]; at += some) {
        const int64_t n = y->dim[3] - at < some ? y->dim[3] - at : some;
        gp_maxpool_stretch(x, y, a, plane, rows, at, n, to + at * out);
    }
}

/* How many places of a window that begins at `first` lie below `size` and not below `floor`. */
GP_FUNCTION int64_t gp_pool_count(int64_t first, int64_t kernel, int64_t floor, int64_t size)
{
    const int64_t from = first > floor ? first : floor;
    return (first + kernel < size ? first + kernel : size) - from;
}

GP_FUNCTION void gp_avgpool_row(const gp_tensor *x, const gp_tensor *y, const gp_avgpool2d_attr *a,
                                const gp_real *restrict plane, int64_t row, gp_real *restrict to)
{
    const int64_t step = a->stride[1] * x->stride[3], out = y->stride[3];
    const int64_t top = row * a->stride[0] - a->pad[0];
    for (int64_t j = 0; j < y->dim[3]; j++)
        to[j * out] = 0;
    for (int64_t ki = 0; ki < a->kernel[0]; ki++) {
        if (top + ki < 0 || top + ki >= x->dim[2])
            continue;
        for (int64_t kj = 0; kj < a->kernel[1]; kj++) {
            const int64_t first = kj - a->pad[1];
            const gp_range in = gp_inside(0, y->dim[3], a->stride[1], first, x->dim[3]);
            const gp_real *from = plane + (top + ki) * x->stride[2] + first * x->stride[3];
            for (int64_t j = in.from; j < in.to; j++)
                to[j * out] += from[j * step];
        }
    }
    /* With count_include_pad the edges are those of the padded image. */
    const int64_t low[2] = {a->count_include_pad ? -a->pad[0] : 0,
                            a->count_include_pad ? -a->pad[1] : 0};
    const int64_t high[2] = {x->dim[2] + (a->count_include_pad ? a->pad[2] : 0),
                             x->dim[3] + (a->count_include_pad ? a->pad[3] : 0)};
    const int64_t rows = gp_pool_count(top, a->kernel[0], low[0], high[0]);
    for (int64_t j = 0; j < y->dim[3]; j++)
        to[j * out] /= (gp_real)(rows * gp_pool_count(j * a->stride[1] - a->pad[1], a->kernel[1],
                                                      low[1], high[1]));
}

/* Plane i (of N * C) of a tensor. */
GP_FUNCTION gp_real *gp_plane(const gp_tensor *t, int64_t i)
{
    return (gp_real *)t->data + i / t->dim[1] * t->stride[0] + i % t->dim[1] * t->stride[1];
}

GP_KERNEL(maxpool2d)
{
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t rows = y->dim[2], count = y->dim[0] * y->dim[1] * rows;
    GP_PARALLEL(c->run, gp_count(x) > 32768)
    for (int64_t i = 0; i < count; i++)
        gp_maxpool_row(x, y, c->attr, gp_plane(x, i / rows), i % rows,
                       gp_plane(y, i / rows) + i % rows * y->stride[2]);
    return GP_OK;
}

GP_KERNEL(avgpool2d)
{
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t rows = y->dim[2], count = y->dim[0] * y->dim[1] * rows;
    GP_PARALLEL(c->run, gp_count(x) > 32768)
    for (int64_t i = 0; i < count; i++)
        gp_avgpool_row(x, y, c->attr, gp_plane(x, i / rows), i % rows,
                       gp_plane(y, i / rows) + i % rows * y->stride[2]);
    return GP_OK;
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
