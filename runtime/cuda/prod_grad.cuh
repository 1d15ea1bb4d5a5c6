/* The gradient of prod: each element gets dy times the product of all others, exact also where some
 * are 0. A pass forwards leaves the products of those before, a pass backwards multiplies by those
 * after. One thread per output. Of 16 bits the first pass leaves f32 in the workspace. */
#ifndef GP_PROD_GRAD_CUH
#define GP_PROD_GRAD_CUH

#include "base.cuh"

static __global__ void gp_prod_slopes(gp_fold from, gp_reals x, gp_fold up, const gp_real *dy,
                                      gp_fold to, gp_reals dx, gp_real *kept)
{
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (GP_EACH(k, to.outers * to.width)) {
        const int64_t outer = k / to.width, column = k % to.width;
        const int64_t in = gp_line_at(&from.outer, outer) + gp_line_at(&from.wide, column);
        const int64_t out = gp_line_at(&to.outer, outer) + gp_line_at(&to.wide, column);
        gp_real *before = kept ? kept + thread * to.count : (gp_real *)dx.at + out;
        gp_real product = dy[gp_line_at(&up.outer, outer) + gp_line_at(&up.wide, column)];
        for (int64_t i = 0; i < to.count; i++) {
            before[kept ? i : gp_line_at(&to.in, i)] = product;
            product *= x[in + gp_line_at(&from.in, i)];
        }
        product = 1;
        for (int64_t i = to.count; i-- > 0;) {
            const int64_t at = gp_line_at(&to.in, i);
            dx.put(out + at, before[kept ? i : at] * product);
            product *= x[in + gp_line_at(&from.in, i)];
        }
    }
}

GP_KERNEL(prod_grad)
{
    const gp_prod_grad_attr *a = (const gp_prod_grad_attr *)c->attr;
    const gp_tensor *x = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    const gp_fold from = gp_fold_of(x, a->axes), up = gp_fold_of(dy, a->axes);
    const gp_fold to = gp_fold_of(dx, a->axes);
    const int64_t lines = to.outers * to.width;
    const int64_t threads = gp_is_half(c) ? gp_prod_threads(lines) : lines;
    const unsigned block = gp_block_of(threads);
    GP_LAUNCH(c, gp_prod_slopes, gp_blocks(threads, block), block, 0, from, gp_reals_of(x), up,
              (const gp_real *)dy->data, to, gp_reals_of(dx),
              gp_is_half(c) ? (gp_real *)c->work : NULL);
    return GP_OK;
}

GP_TAKES_HALF(prod_grad)

#endif
