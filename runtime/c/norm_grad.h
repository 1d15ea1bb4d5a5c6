/* The gradient of layernorm, normalize and rmsnorm: of x (output 0), scale (1) and bias (2).
 *
 * With n = (x - mean) * inverse and g = dy * scale: dx = inverse * (g - mean(g) - n * mean(g n)),
 * without mean(g) for rmsnorm. Scale and bias sum over rows: in at most GP_NORM_CHUNKS chunks that
 * follow from the shape, then chunk by chunk. May run in place of x or dy. */
#ifndef GP_NORM_GRAD_H
#define GP_NORM_GRAD_H

#include "row.h"
#include "vector.h"

typedef struct {
    int64_t axes;   /* how many of the last axes make a row */
    int64_t centre; /* whether the mean was taken off */
} gp_norm_grad_attr;

enum { GP_NORM_CHUNKS = 32 };

GP_FUNCTION int64_t gp_norm_chunks(int64_t rows)
{
    return rows < GP_NORM_CHUNKS ? rows : GP_NORM_CHUNKS;
}

GP_WORKSPACE(norm_grad)
{
    const gp_norm_grad_attr *a = c->attr;
    const gp_tensor *x = &c->in[0];
    int64_t rows = gp_span(x, 0, x->rank - (int)a->axes), n = gp_count(x) / rows;
    return (size_t)(2 * gp_norm_chunks(rows) * n) * sizeof(gp_real);
}

/* What a row gives to all: sums of g and of g * n, and its share of dscale and dbias. */
typedef struct {
    gp_real sum[GP_ROW_LANES], along[GP_ROW_LANES];
} gp_norm_sums;

/* Some elements, at most as many as there are lanes. */
GP_FUNCTION void gp_norm_grad_lanes(gp_norm_sums *restrict s, const gp_real *x, const gp_real *dy,
                                    const gp_real *scale, gp_real mean, gp_real inverse, int some,
                                    gp_real *restrict dscale, gp_real *restrict dbias)
{
    for (int k = 0; k < some; k++) {
        const gp_real unit = (x[k] - mean) * inverse, g = scale ? dy[k] * scale[k] : dy[k];
        s->sum[k] += g;
        s->along[k] += g * unit;
        dscale[k] += dy[k] * unit;
        dbias[k] += dy[k];
    }
}

/* One row; adds to dscale and dbias. */
GP_FUNCTION void gp_norm_grad_row(const gp_real *x, const gp_real *dy, const gp_real *scale,
                                  gp_real mean, gp_real inverse, int centre, int64_t n, gp_real *dx,
                                  int streams, gp_real *dscale, gp_real *dbias)
{
    double sum = 0, along = 0;
    gp_real piece[GP_STREAM_PIECE];
    for (int64_t from = 0; from < n; from += GP_ROW_STRETCH) {
        const int64_t to = from + GP_ROW_STRETCH < n ? from + GP_ROW_STRETCH : n;
        gp_norm_sums s = {{0}, {0}};
        int64_t i = from;
        for (; i + GP_ROW_LANES <= to; i += GP_ROW_LANES)
            gp_norm_grad_lanes(&s, x + i, dy + i, scale ? scale + i : NULL, mean, inverse,
                               GP_ROW_LANES, dscale + i, dbias + i);
        gp_norm_grad_lanes(&s, x + i, dy + i, scale ? scale + i : NULL, mean, inverse,
                           (int)(to - i), dscale + i, dbias + i);
        sum += (double)gp_row_lanes(s.sum);
        along += (double)gp_row_lanes(s.along);
    }
    const gp_real shift = centre ? (gp_real)(sum / (double)n) : 0;
    const gp_real slope = (gp_real)(along / (double)n);
    for (int64_t i = 0; i < n && dx; i += GP_STREAM_PIECE) {
        const int64_t some = gp_stream_piece(n - i);
        gp_real *at = streams ? piece : dx + i;
        GP_IVDEP
        for (int64_t k = 0; k < some; k++) {
            const gp_real unit = (x[i + k] - mean) * inverse;
            const gp_real g = scale ? dy[i + k] * scale[i + k] : dy[i + k];
            at[k] = inverse * (g - shift - unit * slope);
        }
        if (streams)
            gp_stream(dx + i, piece, some, x + n + i);
    }
}

GP_FUNCTION void gp_norm_join(gp_real *to, const gp_real *part, int64_t chunks, int64_t n)
{
    memset(to, 0, (size_t)n * sizeof *to);
    for (int64_t k = 0; k < chunks; k++)
        for (int64_t i = 0; i < n; i++)
            to[i] += part[2 * k * n + i];
}

/* Operands: x, dy, scale (or none), mean (none for rmsnorm), inverse deviation. */
GP_KERNEL(norm_grad)
{
    const gp_norm_grad_attr *a = c->attr;
    const gp_real *x = c->in[0].data, *dy = c->in[1].data, *scale = c->in[2].data;
    const gp_real *mean = c->in[3].data, *inverse = c->in[4].data;
    gp_real *dx = c->out[0].data, *work = c->work;
    const int64_t rows = gp_span(&c->in[0], 0, c->in[0].rank - (int)a->axes);
    const int64_t n = gp_count(&c->in[0]) / rows, chunks = gp_norm_chunks(rows);
    const int centre = (int)a->centre, streams = gp_streams(dx, x, dy, rows * n);
    GP_PARALLEL(c->run, rows * n > 8192)
    for (int64_t k = 0; k < chunks; k++) {
        gp_real *dscale = work + 2 * k * n, *dbias = dscale + n;
        memset(dscale, 0, (size_t)(2 * n) * sizeof *dscale);
        for (int64_t row = k * rows / chunks; row < (k + 1) * rows / chunks; row++)
            gp_norm_grad_row(x + row * n, dy + row * n, scale, mean ? mean[row] : 0, inverse[row],
                             centre, n, dx ? dx + row * n : NULL, streams, dscale, dbias);
        gp_stream_end();
    }
    if (c->out[1].data)
        gp_norm_join(c->out[1].data, work, chunks, n);
    if (c->out[2].data)
        gp_norm_join(c->out[2].data, work + n, chunks, n);
    return GP_OK;
}

#endif
