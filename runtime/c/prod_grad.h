/* The gradient of prod: each element gets dy times the product of all others, exact also where some
 * are 0. A pass forwards leaves the products of those before, a pass backwards multiplies by those
 * after. */
#ifndef GP_PROD_GRAD_H
#define GP_PROD_GRAD_H

#include "fold.h"
#include "settings.h"

/* Of 16 bits: the products of a line for each thread. */
GP_WORKSPACE(prod_grad)
{
    const gp_prod_grad_attr *a = c->attr;
    const gp_fold to = gp_fold_of(&c->out[0], a->axes);
    return gp_is_half(c) ? (size_t)(c->run->threads * to.count) * sizeof(gp_real) : 0;
}

GP_WAYS(prod_grad)
{
    gp_way(ways, "prod_half", gp_is_half(c));
}

GP_KERNEL(prod_grad)
{
    const gp_prod_grad_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    const gp_fold from = gp_fold_of(x, a->axes), up = gp_fold_of(dy, a->axes);
    const gp_fold to = gp_fold_of(dx, a->axes);
    const gp_real *slope = dy->data;
    gp_line row = {.rank = 0};
    gp_line_add(&row, to.count, 1);
    GP_PARALLEL(c->run, gp_count(x) > 1 << 14)
    for (int64_t k = 0; k < to.outers * to.width; k++) {
        const int64_t outer = k / to.width, column = k % to.width;
        const int64_t in = gp_line_at(&from.outer, outer) + gp_line_at(&from.wide, column);
        const int64_t out = gp_line_at(&to.outer, outer) + gp_line_at(&to.wide, column);
        gp_real *before = (gp_real *)dx->data + out;
        const gp_line *line = &to.in;
        if (GP_WAY(prod_half, gp_is_half(c))) {
            before = (gp_real *)c->work + gp_thread() * to.count;
            line = &row;
        }
        gp_real product = slope[gp_line_at(&up.outer, outer) +
                                gp_line_at(&up.wide, column)]; /* the same for all */
        for (int64_t i = 0; i < to.count; i++) {
            before[gp_line_at(line, i)] = product;
            product *= gp_get_real(x->data, in + gp_line_at(&from.in, i), x->dtype);
        }
        product = 1;
        for (int64_t i = to.count; i-- > 0;) {
            gp_set_real(dx->data, out + gp_line_at(&to.in, i), dx->dtype,
                        before[gp_line_at(line, i)] * product);
            product *= gp_get_real(x->data, in + gp_line_at(&from.in, i), x->dtype);
        }
    }
    return GP_OK;
}

#endif
