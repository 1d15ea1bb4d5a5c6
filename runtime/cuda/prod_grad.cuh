/* The gradient of prod: each element gets dy times the product of all others, exact also where some
 * are 0. A pass forwards leaves the products of those before, a pass backwards multiplies by those
 * after. One thread per output. */
#ifndef GP_PROD_GRAD_CUH
#define GP_PROD_GRAD_CUH

#include "base.cuh"

static __global__ void gp_prod_slopes(gp_fold from, const gp_real *x, gp_fold up, const gp_real *dy,
                                      gp_fold to, gp_real *dx)
{
    for (GP_EACH(k, to.outers * to.width)) {
        const int64_t outer = k / to.width, column = k % to.width;
        const gp_real *in = x + gp_line_at(&from.outer, outer) + gp_line_at(&from.wide, column);
        gp_real *out = dx + gp_line_at(&to.outer, outer) + gp_line_at(&to.wide, column);
        gp_real product = dy[gp_line_at(&up.outer, outer) + gp_line_at(&up.wide, column)];
        for (int64_t i = 0; i < to.count; i++) {
            out[gp_line_at(&to.in, i)] = product;
            product *= in[gp_line_at(&from.in, i)];
        }
        product = 1;
        for (int64_t i = to.count; i-- > 0;) {
            out[gp_line_at(&to.in, i)] *= product;
            product *= in[gp_line_at(&from.in, i)];
        }
    }
}

GP_KERNEL(prod_grad)
{
    const gp_prod_grad_attr *a = (const gp_prod_grad_attr *)c->attr;
    const gp_tensor *x = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    const gp_fold from = gp_fold_of(x, a->axes), up = gp_fold_of(dy, a->axes);
    const gp_fold to = gp_fold_of(dx, a->axes);
    const unsigned block = gp_block_of(to.outers * to.width);
    GP_LAUNCH(c, gp_prod_slopes, gp_blocks(to.outers * to.width, block), block, 0, from,
              (const gp_real *)x->data, up, (const gp_real *)dy->data, to, (gp_real *)dx->data);
    return GP_OK;
}

#endif
