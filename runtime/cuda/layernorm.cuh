/* layernorm, normalize (the same without scale and bias) and rmsnorm: rows over the last axes, one
 * block per row.
 *
 * Mean and inverse standard deviation take two passes over the row, in double where squares
 * overflow a real: an inverse of 0 would hide a row that diverges. They are outputs 1 and 2
 * (rmsnorm: the inverse root mean square is output 1), for the backward pass; they need not be
 * stored. May run in place. */
#ifndef GP_LAYERNORM_CUH
#define GP_LAYERNORM_CUH

#include "base.cuh"

#include "../c/math.h"

/* to = (x - mean) * inverse * scale + bias; NULL stands for ones and zeros. */
static __global__ void gp_norm_rows(gp_reals x, gp_reals to, int64_t rows, int64_t n,
                                    gp_reals scale, gp_reals bias, gp_real *means,
                                    gp_real *inverses, int centre, double eps)
{
    for (GP_EACH_BLOCK(row, rows)) {
        const gp_reals from = gp_reals_from(x, row * n);
        gp_real mean = 0;
        if (centre) {
            double sum = 0;
            for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
                sum += (double)from[i];
            mean = (gp_real)(gp_block_sum(sum) / (double)n);
        }
        double squares = 0;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            squares += gp_square(from[i] - mean);
        const double square = gp_block_sum(squares) / (double)n;
        const gp_real inverse = square <= GP_LARGEST ? 1 / gp_sqrt((gp_real)square + (gp_real)eps)
                                                     : (gp_real)(1 / sqrt(square + eps));
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            gp_real y = (from[i] - mean) * inverse;
            y = scale.at ? y * scale[i] : y;
            to.put(row * n + i, bias.at ? y + bias[i] : y);
        }
        if (threadIdx.x == 0 && means)
            means[row] = mean;
        if (threadIdx.x == 0 && inverses)
            inverses[row] = inverse;
    }
}

GP_HOST gp_real *gp_norm_output(const gp_call *c, int i)
{
    return i < c->outs ? (gp_real *)c->out[i].data : NULL;
}

GP_HOST int gp_norm(const gp_call *c, int centre)
{
    const gp_layernorm_attr *a = (const gp_layernorm_attr *)c->attr;
    const gp_tensor *t = &c->in[0];
    const int64_t rows = gp_span(t, 0, t->rank - (int)a->axes), n = gp_count(t) / rows;
    gp_real *means = centre ? gp_norm_output(c, 1) : NULL;
    GP_LAUNCH(c, gp_norm_rows, gp_blocks(rows, 1), gp_block_of(n), 0, gp_reals_of(t),
              gp_reals_of(&c->out[0]), rows, n, gp_reals_in(c, 1), gp_reals_in(c, 2), means,
              gp_norm_output(c, centre ? 2 : 1), centre, a->eps);
    return GP_OK;
}

GP_KERNEL(layernorm)
{
    return gp_norm(c, 1);
}

GP_KERNEL(normalize)
{
    return gp_norm(c, 1);
}

GP_KERNEL(rmsnorm)
{
    return gp_norm(c, 0);
}

GP_TAKES_HALF(layernorm)
GP_TAKES_HALF(normalize)
GP_TAKES_HALF(rmsnorm)

#endif
