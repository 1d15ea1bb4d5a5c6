/* The gradient of layernorm, normalize and rmsnorm: of x (output 0), scale (1) and bias (2).
 *
 * With n = (x - mean) * inverse and g = dy * scale: dx = inverse * (g - mean(g) - n * mean(g n)),
 * without mean(g) for rmsnorm: one block per row. Scale and bias sum over rows: one thread per
 * column of a chunk of rows, then chunks are added in order. That comes first, so that dx may be
 * written over x or dy. Where x was not kept, n stands in its place. */
#ifndef GP_NORM_GRAD_CUH
#define GP_NORM_GRAD_CUH

#include "base.cuh"

/* Operands, all contiguous; scale and means may be NULL. */
typedef struct {
    gp_reals x, dy, scale;
    const gp_real *means, *inverses;
    int64_t rows, n;
    int centre, made;
} gp_normed;

/* n is (x - mean) times this. */
GP_DEVICE gp_real gp_norm_unit(const gp_normed *s, int64_t row)
{
    return s->made ? 1 : s->inverses[row];
}

static __global__ void gp_norm_grad_parts(gp_normed s, int64_t chunks, double *part)
{
    for (GP_EACH(task, chunks * s.n)) {
        const int64_t k = task / s.n, i = task % s.n;
        double dscale = 0, dbias = 0;
        for (int64_t row = k * s.rows / chunks; row < (k + 1) * s.rows / chunks; row++) {
            const gp_real mean = s.means ? s.means[row] : 0, dy = s.dy[row * s.n + i];
            dscale += (double)(dy * ((s.x[row * s.n + i] - mean) * gp_norm_unit(&s, row)));
            dbias += (double)dy;
        }
        part[task] = dscale;
        part[chunks * s.n + task] = dbias;
    }
}

static __global__ void gp_norm_grad_join(const double *part, int64_t chunks, int64_t n,
                                         gp_real *dscale, gp_real *dbias)
{
    for (GP_EACH(i, n)) {
        double scale = 0, bias = 0;
        for (int64_t k = 0; k < chunks; k++) {
            scale += part[k * n + i];
            bias += part[(chunks + k) * n + i];
        }
        if (dscale)
            dscale[i] = (gp_real)scale;
        if (dbias)
            dbias[i] = (gp_real)bias;
    }
}

static __global__ void gp_norm_grad_rows(gp_normed s, gp_reals dx)
{
    for (GP_EACH_BLOCK(row, s.rows)) {
        const gp_reals x = gp_reals_from(s.x, row * s.n), dy = gp_reals_from(s.dy, row * s.n);
        const gp_real mean = s.means ? s.means[row] : 0, inverse = gp_norm_unit(&s, row);
        double sum = 0, along = 0;
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
            const gp_real g = s.scale.at ? dy[i] * s.scale[i] : dy[i];
            sum += (double)g;
            along += (double)(g * ((x[i] - mean) * inverse));
        }
        sum = gp_block_sum(sum);
        along = gp_block_sum(along);
        const gp_real shift = s.centre ? (gp_real)(sum / (double)s.n) : 0;
        const gp_real slope = (gp_real)(along / (double)s.n);
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
            const gp_real unit = (x[i] - mean) * inverse,
                          g = s.scale.at ? dy[i] * s.scale[i] : dy[i];
            dx.put(row * s.n + i, s.inverses[row] * (g - shift - unit * slope));
        }
    }
}

/* Operands: x, dy, scale (or none), mean (none for rmsnorm), inverse standard deviation. */
GP_KERNEL(norm_grad)
{
    const gp_norm_grad_attr *a = (const gp_norm_grad_attr *)c->attr;
    gp_normed s;
    s.x = gp_reals_of(&c->in[0]);
    s.dy = gp_reals_of(&c->in[1]);
    s.scale = gp_reals_of(&c->in[2]);
    s.means = (const gp_real *)c->in[3].data;
    s.inverses = (const gp_real *)c->in[4].data;
    s.rows = gp_span(&c->in[0], 0, c->in[0].rank - (int)a->axes);
    s.n = gp_count(&c->in[0]) / s.rows;
    s.centre = (int)a->centre;
    s.made = (int)a->made;
    gp_real *dscale = (gp_real *)c->out[1].data, *dbias = (gp_real *)c->out[2].data;
    const int64_t chunks = gp_norm_chunks(s.rows);
    if (dscale || dbias) {
        const unsigned block = gp_block_of(chunks * s.n);
        double *part = (double *)c->work;
        GP_LAUNCH(c, gp_norm_grad_parts, gp_blocks(chunks * s.n, block), block, 0, s, chunks, part);
        GP_LAUNCH(c, gp_norm_grad_join, gp_blocks(s.n, block), block, 0, part, chunks, s.n, dscale,
                  dbias);
    }
    if (c->out[0].data)
        GP_LAUNCH(c, gp_norm_grad_rows, gp_blocks(s.rows, 1), gp_block_of(s.n), 0, s,
                  gp_reals_of(&c->out[0]));
    return GP_OK;
}

GP_TAKES_HALF(norm_grad)

#endif
