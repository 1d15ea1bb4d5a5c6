/* Resizing along an axis: a product with a band matrix, whose rows are made first. */
#ifndef GP_RESIZE_AXIS_H
#define GP_RESIZE_AXIS_H

#include "resize_taps.h"

GP_WORKSPACE(resize_axis)
{
    const gp_resize v = gp_resize_of(c->attr, &c->in[0], &c->out[0]);
    return gp_resize_table(&v);
}

GP_WORKSPACE(resize_axis_grad)
{
    const gp_resize v = gp_resize_of(c->attr, &c->out[0], &c->in[0]);
    return gp_resize_table(&v);
}

/* Makes the table in the workspace; returns where its weights are. */
GP_FUNCTION gp_real *gp_resize_rows(const gp_call *c, const gp_resize *v)
{
    int64_t *first = c->work;
    gp_real *weight = (gp_real *)(first + v->out);
    for (int64_t o = 0; o < v->out; o++)
        first[o] = gp_resize_taps(c->attr, v, o, weight + o * v->taps);
    return weight;
}

GP_KERNEL(resize_axis)
{
    const gp_resize_axis_attr *a = c->attr;
    const gp_resize v = gp_resize_of(a, &c->in[0], &c->out[0]);
    const gp_real *weights = gp_resize_rows(c, &v), *x = c->in[0].data;
    const int64_t *first = c->work, units = v.outers * v.out;
    GP_PARALLEL(c->run, units * v.inners > 8192)
    for (int64_t i = 0; i < units; i++) {
        const int64_t o = i % v.out;
        const gp_real *weight = weights + o * v.taps;
        const gp_real *from = x + (i / v.out * v.in + (first[o] < 0 ? 0 : first[o])) * v.inners;
        gp_real *to = (gp_real *)c->out[0].data + i * v.inners;
        for (int64_t j = 0; j < v.inners; j++)
            to[j] = first[o] < 0 ? (gp_real)a->outside : weight[0] * from[j];
        for (int64_t k = 1; k < v.taps && first[o] >= 0; k++)
            for (int64_t j = 0; j < v.inners; j++)
                to[j] += weight[k] * from[k * v.inners + j];
    }
    return GP_OK;
}

/* Elements of the result share those of the operand: all along the axis is the work of one thread.
 */
GP_KERNEL(resize_axis_grad)
{
    const gp_resize v = gp_resize_of(c->attr, &c->out[0], &c->in[0]);
    const gp_real *weights = gp_resize_rows(c, &v);
    const int64_t *first = c->work;
    GP_PARALLEL(c->run, v.outers * v.out * v.inners > 8192)
    for (int64_t i = 0; i < v.outers; i++) {
        const gp_real *up = (const gp_real *)c->in[0].data + i * v.out * v.inners;
        gp_real *to = (gp_real *)c->out[0].data + i * v.in * v.inners;
        memset(to, 0, (size_t)(v.in * v.inners) * sizeof *to);
        for (int64_t o = 0; o < v.out; o++)
            for (int64_t k = 0; k < v.taps && first[o] >= 0; k++)
                for (int64_t j = 0; j < v.inners; j++)
                    to[(first[o] + k) * v.inners + j] +=
                        weights[o * v.taps + k] * up[o * v.inners + j];
    }
    return GP_OK;
}

#endif
