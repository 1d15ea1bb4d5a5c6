/* Resizing along an axis: a product with a band matrix, whose rows are made first. Of 16 bits, some
 * columns are widened at once. */
#ifndef GP_RESIZE_AXIS_H
#define GP_RESIZE_AXIS_H

#include "narrow.h"
#include "resize_taps.h"

enum { GP_RESIZE_LANES = GP_BLOCK(64, 4) };

/* Columns of 16 bits that are widened at once. */
GP_FUNCTION int64_t gp_resize_lanes(const gp_resize *v)
{
    return v->inners < GP_RESIZE_LANES ? v->inners : GP_RESIZE_LANES;
}

/* The table, and behind it what each thread widens: columns of the operand and of the result. */
GP_FUNCTION size_t gp_resize_room(const gp_call *c, const gp_resize *v)
{
    const int64_t own = gp_is_half(c) ? (v->in + v->out) * gp_resize_lanes(v) : 0;
    return gp_resize_table(v) + (size_t)(c->run->threads * own) * sizeof(gp_real);
}

GP_WORKSPACE(resize_axis)
{
    const gp_resize v = gp_resize_of(c->attr, &c->in[0], &c->out[0]);
    return gp_resize_room(c, &v);
}

GP_WORKSPACE(resize_axis_grad)
{
    const gp_resize v = gp_resize_of(c->attr, &c->out[0], &c->in[0]);
    return gp_resize_room(c, &v);
}

GP_WAYS(resize_axis)
{
    gp_way(ways, "resize_half", gp_is_half(c));
}

GP_WAYS(resize_axis_grad)
{
    gp_way(ways, "resize_half", gp_is_half(c));
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

/* n columns of element o of the result. */
GP_FUNCTION void gp_resize_made(const gp_resize_axis_attr *a, const gp_resize *v, int64_t first,
                                const gp_real *weight, const gp_real *x, gp_real *to, int64_t n)
{
    const gp_real *from = x + (first < 0 ? 0 : first) * n;
    for (int64_t j = 0; j < n; j++)
        to[j] = first < 0 ? (gp_real)a->outside : weight[0] * from[j];
    for (int64_t k = 1; k < v->taps && first >= 0; k++)
        for (int64_t j = 0; j < n; j++)
            to[j] += weight[k] * from[k * n + j];
}

/* Adds n columns of element o of the result's gradient to the elements that it was made of. */
GP_FUNCTION void gp_resize_back(const gp_resize *v, int64_t first, const gp_real *weight,
                                const gp_real *up, gp_real *to, int64_t n)
{
    for (int64_t k = 0; k < v->taps && first >= 0; k++)
        for (int64_t j = 0; j < n; j++)
            to[(first + k) * n + j] += weight[k] * up[j];
}

/* Some columns of all that lies along the axis: the work of one thread. */
GP_FUNCTION void gp_resize_half(const gp_call *c, const gp_resize *v, const gp_real *weights,
                                int back)
{
    const int64_t *first = c->work;
    const int64_t lanes = gp_resize_lanes(v), tiles = (v->inners + lanes - 1) / lanes;
    const int64_t from = back ? v->out : v->in, made = back ? v->in : v->out;
    gp_real *const work = (gp_real *)(void *)((char *)c->work + gp_resize_table(v));
    GP_PARALLEL(c->run, v->outers * (v->in + v->out) * v->inners > 8192)
    for (int64_t i = 0; i < v->outers * tiles; i++) {
        const int64_t column = i % tiles * lanes, left = v->inners - column;
        const int64_t n = left < lanes ? left : lanes, outer = i / tiles;
        gp_real *x = work + gp_thread() * (v->in + v->out) * lanes, *to = x + from * n;
        for (int64_t k = 0; k < from; k++)
            gp_get_row(x + k * n, gp_element(&c->in[0], (outer * from + k) * v->inners + column), n,
                       c->in[0].dtype);
        memset(to, 0, (size_t)(made * n) * sizeof *to);
        for (int64_t o = 0; o < v->out; o++)
            if (back)
                gp_resize_back(v, first[o], weights + o * v->taps, x + o * n, to, n);
            else
                gp_resize_made(c->attr, v, first[o], weights + o * v->taps, x, to + o * n, n);
        for (int64_t k = 0; k < made; k++)
            gp_set_row(gp_element(&c->out[0], (outer * made + k) * v->inners + column), to + k * n,
                       n, c->out[0].dtype);
    }
}

GP_KERNEL(resize_axis)
{
    const gp_resize v = gp_resize_of(c->attr, &c->in[0], &c->out[0]);
    const gp_real *weights = gp_resize_rows(c, &v), *x = c->in[0].data;
    const int64_t *first = c->work, units = v.outers * v.out;
    if (GP_WAY(resize_half, gp_is_half(c))) {
        gp_resize_half(c, &v, weights, 0);
        return GP_OK;
    }
    GP_PARALLEL(c->run, units * v.inners > 8192)
    for (int64_t i = 0; i < units; i++) {
        const int64_t o = i % v.out;
        gp_resize_made(c->attr, &v, first[o], weights + o * v.taps, x + i / v.out * v.in * v.inners,
                       (gp_real *)c->out[0].data + i * v.inners, v.inners);
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
    if (GP_WAY(resize_half, gp_is_half(c))) {
        gp_resize_half(c, &v, weights, 1);
        return GP_OK;
    }
    GP_PARALLEL(c->run, v.outers * v.out * v.inners > 8192)
    for (int64_t i = 0; i < v.outers; i++) {
        const gp_real *up = (const gp_real *)c->in[0].data + i * v.out * v.inners;
        gp_real *to = (gp_real *)c->out[0].data + i * v.in * v.inners;
        memset(to, 0, (size_t)(v.in * v.inners) * sizeof *to);
        for (int64_t o = 0; o < v.out; o++)
            gp_resize_back(&v, first[o], weights + o * v.taps, up + o * v.inners, to, v.inners);
    }
    return GP_OK;
}

#endif
