/* Resizing along an axis: a product with a band matrix, whose rows are made first. Then a thread
 * for each element of the result; going back, one for each line along the axis, since elements of
 * the result share those of the operand. */
#ifndef GP_RESIZE_AXIS_CUH
#define GP_RESIZE_AXIS_CUH

#include "base.cuh"

#include "../c/resize_taps.h"

static __global__ void gp_resize_rows(gp_resize_axis_attr a, gp_resize v, int64_t *first,
                                      gp_real *weight)
{
    for (GP_EACH(o, v.out))
        first[o] = gp_resize_taps(&a, &v, o, weight + o * v.taps);
}

static __global__ void gp_resize_elements(gp_real outside, gp_resize v, const int64_t *first,
                                          const gp_real *weight, const gp_real *x, gp_real *y)
{
    for (GP_EACH(i, v.outers * v.out * v.inners)) {
        const int64_t o = i / v.inners % v.out, outer = i / v.inners / v.out;
        gp_real sum = first[o] < 0 ? outside : 0;
        for (int64_t k = 0; k < v.taps && first[o] >= 0; k++)
            sum +=
                weight[o * v.taps + k] * x[(outer * v.in + first[o] + k) * v.inners + i % v.inners];
        y[i] = sum;
    }
}

static __global__ void gp_resize_lines(gp_resize v, const int64_t *first, const gp_real *weight,
                                       const gp_real *dy, gp_real *dx)
{
    for (GP_EACH(i, v.outers * v.inners)) {
        const gp_real *up = dy + i / v.inners * v.out * v.inners + i % v.inners;
        gp_real *to = dx + i / v.inners * v.in * v.inners + i % v.inners;
        for (int64_t k = 0; k < v.in; k++)
            to[k * v.inners] = 0;
        for (int64_t o = 0; o < v.out; o++)
            for (int64_t k = 0; k < v.taps && first[o] >= 0; k++)
                to[(first[o] + k) * v.inners] += weight[o * v.taps + k] * up[o * v.inners];
    }
}

GP_KERNEL(resize_axis)
{
    const gp_resize_axis_attr *a = (const gp_resize_axis_attr *)c->attr;
    const gp_resize v = gp_resize_of(a, &c->in[0], &c->out[0]);
    int64_t *first = (int64_t *)c->work;
    gp_real *weight = (gp_real *)(first + v.out);
    GP_LAUNCH(c, gp_resize_rows, gp_blocks(v.out, GP_BLOCK), GP_BLOCK, 0, *a, v, first, weight);
    GP_LAUNCH(c, gp_resize_elements, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0,
              (gp_real)a->outside, v, (const int64_t *)first, (const gp_real *)weight,
              (const gp_real *)c->in[0].data, (gp_real *)c->out[0].data);
    return GP_OK;
}

GP_KERNEL(resize_axis_grad)
{
    const gp_resize_axis_attr *a = (const gp_resize_axis_attr *)c->attr;
    const gp_resize v = gp_resize_of(a, &c->out[0], &c->in[0]);
    int64_t *first = (int64_t *)c->work;
    gp_real *weight = (gp_real *)(first + v.out);
    GP_LAUNCH(c, gp_resize_rows, gp_blocks(v.out, GP_BLOCK), GP_BLOCK, 0, *a, v, first, weight);
    GP_LAUNCH(c, gp_resize_lines, gp_blocks(v.outers * v.inners, GP_BLOCK), GP_BLOCK, 0, v,
              (const int64_t *)first, (const gp_real *)weight, (const gp_real *)c->in[0].data,
              (gp_real *)c->out[0].data);
    return GP_OK;
}

#endif
