/* The gradient of layernorm, normalize and rmsnorm: of x (output 0), scale (1) and bias (2).
 *
 * With n = (x - mean) * inverse and g = dy * scale: dx = inverse * (g - mean(g) - n * mean(g n)),
 * without mean(g) for rmsnorm. Scale and bias sum over rows: in at most GP_NORM_CHUNKS chunks that
 * follow from the shape, then chunk by chunk. May run in place of x or dy. */
#ifndef GP_NORM_GRAD_H
#define GP_NORM_GRAD_H

#include "row.h"

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

/* The sums of g and of g * n over a stretch, in lanes. */
GP_FUNCTION void gp_norm_grad_sums(const gp_real *x, const gp_real *dy, const gp_real *scale,
                                   gp_real mean, gp_real inverse, int64_t n, gp_real *part)
{
    gp_real sum[GP_ROW_LANES] = {0}, along[GP_ROW_LANES] = {0};
    for (int64_t i = 0; i < n; i += GP_ROW_LANES) {
        gp_real g[GP_ROW_LANES] = {0}, unit[GP_ROW_LANES] = {0};
        const int lanes = n - i < GP_ROW_LANES ? (int)(n - i) : GP_ROW_LANES;
        for (int k = 0; k < lanes; k++) {
            g[k] = scale ? dy[i + k] * scale[i + k] : dy[i + k];
            unit[k] = (x[i + k] - mean) * inverse;
        }
        for (int k = 0; k < GP_ROW_LANES; k++)
            sum[k] += g[k];
        for (int k = 0; k < GP_ROW_LANES; k++)
            along[k] += g[k] * unit[k];
    }
    part[0] = gp_row_lanes(sum);
    part[1] = gp_row_lanes(along);
}

/* One row; adds to dscale and dbias. */
GP_FUNCTION void gp_norm_grad_row(const gp_real *x, const gp_real *dy, const gp_real *scale,
                                  gp_real mean, gp_real inverse, int centre, int64_t n, gp_real *dx,
                                  gp_real *dscale, gp_real *dbias)
{
    double sum = 0, along = 0;
    for (int64_t from = 0; from < n; from += GP_ROW_STRETCH) {
        const int64_t to = from + GP_ROW_STRETCH < n ? from + GP_ROW_STRETCH : n;
        gp_real part[2];
        gp_norm_grad_sums(x + from, dy + from, scale ? scale + from : NULL, mean, inverse,
                          to - from, part);
        sum += (double)part[0];
        along += (double)part[1];
        for (int64_t i = from; i < to; i++)
            dscale[i] += dy[i] * ((x[i] - mean) * inverse);
        for (int64_t i = from; i < to; i++)
            dbias[i] += dy[i];
    }
    const gp_real shift = centre ? (gp_real)(sum / (double)n) : 0;
    const gp_real slope = (gp_real)(along / (double)n);
    if (!dx)
        return;
    GP_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const gp_real unit = (x[i] - mean) * inverse, g = scale ? dy[i] * scale[i] : dy[i];
        dx[i] = inverse * (g - shift - unit * slope);
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
    const int centre = (int)a->centre;
    GP_PARALLEL(c->run, rows * n > 8192)
    for (int64_t k = 0; k < chunks; k++) {
        gp_real *dscale = work + 2 * k * n, *dbias = dscale + n;
        memset(dscale, 0, (size_t)(2 * n) * sizeof *dscale);
        for (int64_t row = k * rows / chunks; row < (k + 1) * rows / chunks; row++)
            gp_norm_grad_row(x + row * n, dy + row * n, scale, mean ? mean[row] : 0, inverse[row],
                             centre, n, dx ? dx + row * n : NULL, dscale, dbias);
    }
    if (c->out[1].data)
        gp_norm_join(c->out[1].data, work, chunks, n);
    if (c->out[2].data)
        gp_norm_join(c->out[2].data, work + n, chunks, n);
    return GP_OK;
}

#endif
