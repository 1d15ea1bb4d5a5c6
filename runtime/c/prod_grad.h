/* The gradient of prod: each element gets dy times the product of all others, exact also where some
 * are 0. A pass forwards leaves the products of those before, a pass backwards multiplies by those
 * after. */
#ifndef GP_PROD_GRAD_H
#define GP_PROD_GRAD_H

#include "fold.h"
#include "settings.h"

GP_KERNEL(prod_grad)
{
    const gp_prod_grad_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    const gp_fold from = gp_fold_of(x, a->axes), up = gp_fold_of(dy, a->axes);
    const gp_fold to = gp_fold_of(dx, a->axes);
    const gp_real *data = x->data, *slope = dy->data;
    gp_real *result = dx->data;
    GP_PARALLEL(c->run, gp_count(x) > 1 << 14)
    for (int64_t k = 0; k < to.outers * to.width; k++) {
        const int64_t outer = k / to.width, column = k % to.width;
        const gp_real *in = data + gp_line_at(&from.outer, outer) + gp_line_at(&from.wide, column);
        gp_real *out = result + gp_line_at(&to.outer, outer) + gp_line_at(&to.wide, column);
        gp_real product = slope[gp_line_at(&up.outer, outer) +
                                gp_line_at(&up.wide, column)]; /* the same for all */
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
    return GP_OK;
}

#endif
