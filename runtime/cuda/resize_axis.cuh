/* Resizing along an axis: a product with a band matrix, whose rows are made first. Then a thread
 * for each element of the result; going back, one for each element of the operand, which adds up
 * what it gave to elements of the result, in their order. */
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
                                          const gp_real *weight, gp_reals x, gp_reals y)
{
    for (GP_EACH(i, v.outers * v.out * v.inners)) {
        const int64_t o = i / v.inners % v.out, outer = i / v.inners / v.out;
        gp_real sum = first[o] < 0 ? outside : 0;
        for (int64_t k = 0; k < v.taps && first[o] >= 0; k++)
            sum +=
                weight[o * v.taps + k] * x[(outer * v.in + first[o] + k) * v.inners + i % v.inners];
        y.put(i, sum);
    }
}

/* Whether element o of the result is made of element k. */
GP_DEVICE bool gp_resize_takes(const gp_resize *v, const int64_t *first, int64_t o, int64_t k)
{
    return first[o] >= 0 && k >= first[o] && k < first[o] + v->taps;
}

/* Elements span[2 k] to span[2 k + 1] - 1 of the result, and maybe not all of them, are made of
 * element k. */
static __global__ void gp_resize_find_spans(gp_resize v, const int64_t *first, int64_t *span)
{
    for (GP_EACH(k, v.in)) {
        int64_t from = v.out, to = 0;
        for (int64_t o = 0; o < v.out; o++)
            if (gp_resize_takes(&v, first, o, k)) {
                from = from < o ? from : o;
                to = o + 1;
            }
        span[2 * k] = from;
        span[2 * k + 1] = to;
    }
}

static __global__ void gp_resize_back(gp_resize v, const int64_t *first, const gp_real *weight,
                                      const int64_t *span, gp_reals dy, gp_reals dx)
{
    for (GP_EACH(i, v.outers * v.in * v.inners)) {
        const int64_t k = i / v.inners % v.in, outer = i / v.inners / v.in;
        gp_real sum = 0;
        for (int64_t o = span[2 * k]; o < span[2 * k + 1]; o++)
            if (gp_resize_takes(&v, first, o, k))
                sum += weight[o * v.taps + k - first[o]] *
                       dy[(outer * v.out + o) * v.inners + i % v.inners];
        dx.put(i, sum);
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
              gp_reals_of(&c->in[0]), gp_reals_of(&c->out[0]));
    return GP_OK;
}

GP_KERNEL(resize_axis_grad)
{
    const gp_resize_axis_attr *a = (const gp_resize_axis_attr *)c->attr;
    const gp_resize v = gp_resize_of(a, &c->out[0], &c->in[0]);
    int64_t *span = (int64_t *)c->work, *first = span + 2 * v.in;
    gp_real *weight = (gp_real *)(first + v.out);
    GP_LAUNCH(c, gp_resize_rows, gp_blocks(v.out, GP_BLOCK), GP_BLOCK, 0, *a, v, first, weight);
    GP_LAUNCH(c, gp_resize_find_spans, gp_blocks(v.in, GP_BLOCK), GP_BLOCK, 0, v,
              (const int64_t *)first, span);
    GP_LAUNCH(c, gp_resize_back, gp_blocks(gp_count(&c->out[0]), GP_BLOCK), GP_BLOCK, 0, v,
              (const int64_t *)first, (const gp_real *)weight, (const int64_t *)span,
              gp_reals_of(&c->in[0]), gp_reals_of(&c->out[0]));
    return GP_OK;
}

GP_TAKES_HALF(resize_axis)
GP_TAKES_HALF(resize_axis_grad)

#endif
