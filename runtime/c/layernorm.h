/* layernorm, normalize (the same without scale and bias) and rmsnorm: rows over the last axes.
 *
 * Mean and inverse standard deviation take two passes over the row; a third in double where the
 * squares overflow: an inverse of 0 would hide a row that diverges. They are outputs 1 and 2
 * (rmsnorm: the inverse root mean square is output 1), for the backward pass; they need not be
 * stored. May run in place. */
#ifndef GP_LAYERNORM_H
#define GP_LAYERNORM_H

#include "narrow.h"
#include "row.h"
#include "settings.h"
#include "vector.h"

GP_FUNCTION void gp_norm_save(const gp_call *c, int output, int64_t row, gp_real x)
{
    if (output < c->outs && c->out[output].data)
        ((gp_real *)c->out[output].data)[row] = x;
}

/* Rows of 16 bits are computed as reals: one of each thread; scale and bias. */
GP_FUNCTION size_t gp_norm_work(const gp_call *c, const gp_layernorm_attr *a)
{
    const gp_tensor *x = &c->in[0];
    const int64_t n = gp_span(x, x->rank - (int)a->axes, x->rank);
    return gp_is_half(c) ? (size_t)((c->run->threads + 2) * n) * sizeof(gp_real) : 0;
}

/* scale (1) or bias (2); NULL: not given. */
GP_FUNCTION const gp_real *gp_norm_operand(const gp_call *c, int operand)
{
    return c->ins > operand ? (const gp_real *)c->in[operand].data : NULL;
}

/* to = (x - mean) * inverse * scale + bias; NULL stands for ones and zeros. */
GP_FUNCTION void gp_norm_row(const gp_real *x, gp_real *to, int64_t n, gp_real mean,
                             gp_real inverse, const gp_real *scale, const gp_real *bias)
{
    if (GP_WAY(norm_affine, scale && bias))
        for (int64_t i = 0; i < n; i++)
            to[i] = (x[i] - mean) * inverse * scale[i] + bias[i];
    else if (GP_WAY(norm_scales, scale))
        for (int64_t i = 0; i < n; i++)
            to[i] = (x[i] - mean) * inverse * scale[i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (x[i] - mean) * inverse;
}

/* One row, in place or not; `streams`: the output is not read soon. */
GP_FUNCTION void gp_norm_one(const gp_call *c, const gp_layernorm_attr *a, int centre, int64_t row,
                             const gp_real *x, gp_real *to, int64_t n, int streams)
{
    const gp_real *scale = gp_norm_operand(c, 1), *bias = gp_norm_operand(c, 2);
    gp_real piece[GP_STREAM_PIECE];
    const gp_real mean = centre ? gp_row_sum(x, n) / (gp_real)n : 0;
    const gp_real square = gp_row_squares(x, mean, n) / (gp_real)n;
    const gp_real inverse =
        square <= (gp_real)GP_LARGEST
            ? 1 / gp_sqrt(square + (gp_real)a->eps)
            : (gp_real)(1 / sqrt(gp_row_large_squares(x, mean, n) / (double)n + a->eps));
    if (centre)
        gp_norm_save(c, 1, row, mean);
    gp_norm_save(c, centre ? 2 : 1, row, inverse);
    for (int64_t i = 0; i < n; i += GP_STREAM_PIECE) {
        const int64_t some = gp_stream_piece(n - i);
        gp_norm_row(x + i, streams ? piece : to + i, some, mean, inverse, scale ? scale + i : NULL,
                    bias ? bias + i : NULL);
        if (GP_WAY(norm_streams, streams))
            gp_stream(to + i, piece, some, x + n + i);
    }
}

/* x and the result, or scale and bias, are not f32. */
static GP_NOINLINE int gp_norm_half(const gp_call *c, const gp_layernorm_attr *a, int centre)
{
    const gp_tensor *t = &c->in[0];
    const int64_t rows = gp_span(t, 0, t->rank - (int)a->axes), n = gp_count(t) / rows;
    gp_real *const work = c->work;
    gp_tensor in[3] = {*t};
    gp_call wide = *c;
    for (int i = 1; i < 3 && i < c->ins; i++) {
        in[i] = c->in[i];
        if (in[i].data && in[i].dtype != GP_F32) {
            gp_load_row(work + (i - 1) * n, &c->in[i], 0, n);
            in[i].data = work + (i - 1) * n;
        }
    }
    wide.in = in;
    GP_PARALLEL(c->run, rows * n > 8192)
    for (int64_t row = 0; row < rows; row++) {
        gp_real *own = work + (2 + gp_thread()) * n;
        gp_load_row(own, t, row, n);
        gp_norm_one(&wide, a, centre, row, own, own, n, 0);
        gp_store_row(&c->out[0], row, own, n);
    }
    return GP_OK;
}

GP_FUNCTION int gp_norm_rows(const gp_call *c, const gp_layernorm_attr *a, int centre)
{
    const gp_tensor *t = &c->in[0];
    const int64_t rows = gp_span(t, 0, t->rank - (int)a->axes), n = gp_count(t) / rows;
    if (GP_WAY(norm_half, gp_is_half(c)))
        return gp_norm_half(c, a, centre);
    const int streams = gp_streams(c->out[0].data, t->data, NULL, rows * n);
    GP_PARALLEL(c->run, rows * n > 8192)
    for (int64_t first = 0; first < rows; first += GP_ROW_BLOCK) {
        for (int64_t row = first; row < rows && row < first + GP_ROW_BLOCK; row++)
            gp_norm_one(c, a, centre, row, (const gp_real *)t->data + row * n,
                        (gp_real *)c->out[0].data + row * n, n, streams);
        gp_stream_end();
    }
    return GP_OK;
}

GP_FUNCTION void gp_norm_ways(const gp_call *c, gp_ways *ways)
{
    const int scales = gp_norm_operand(c, 1) != NULL;
    const int affine = scales && gp_norm_operand(c, 2);
    gp_way(ways, "norm_half", gp_is_half(c));
    gp_way(ways, "norm_affine", affine);
    if (!affine)
        gp_way(ways, "norm_scales", scales);
    gp_stream_ways(ways, "norm_streams", !gp_is_half(c), gp_count(&c->in[0]));
}

GP_WORKSPACE(layernorm)
{
    return gp_norm_work(c, c->attr);
}

GP_WORKSPACE(normalize)
{
    return gp_norm_work(c, c->attr);
}

GP_WORKSPACE(rmsnorm)
{
    return gp_norm_work(c, c->attr);
}

GP_WAYS(layernorm)
{
    gp_norm_ways(c, ways);
}

GP_WAYS(normalize)
{
    gp_norm_ways(c, ways);
}

GP_WAYS(rmsnorm)
{
    gp_norm_ways(c, ways);
}

GP_KERNEL(layernorm)
{
    return gp_norm_rows(c, c->attr, 1);
}

GP_KERNEL(normalize)
{
    return gp_norm_rows(c, c->attr, 1);
}

GP_KERNEL(rmsnorm)
{
    return gp_norm_rows(c, c->attr, 0);
}

#endif
