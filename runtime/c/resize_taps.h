/* Resizing along an axis: which elements of the operand an element of the result is made of. */
#ifndef GP_RESIZE_TAPS_H
#define GP_RESIZE_TAPS_H

#include "base.h"
#include "settings.h"

enum { GP_RESIZE_NEAREST, GP_RESIZE_LINEAR, GP_RESIZE_CUBIC };
enum { GP_HALF_DOWN, GP_HALF_UP, GP_DOWN, GP_UP }; /* how the nearest one is rounded to */

/* The operand as [outers, in, inners], and the result with `out` in place of `in`. An element of
 * the result is made of `taps` elements that follow each other. */
typedef struct {
    int64_t outers, in, out, inners, taps;
} gp_resize;

/* How far an interpolating filter reaches, in elements. */
GP_FUNCTION double gp_resize_reach(const gp_resize_axis_attr *a)
{
    return (a->mode == GP_RESIZE_LINEAR ? 1 : 2) / a->shrink;
}

GP_FUNCTION gp_resize gp_resize_of(const gp_resize_axis_attr *a, const gp_tensor *x,
                                   const gp_tensor *y)
{
    const int axis = (int)a->axis;
    gp_resize v;
    v.outers = gp_span(x, 0, axis);
    v.in = x->dim[axis];
    v.out = y->dim[axis];
    v.inners = gp_span(x, axis + 1, x->rank);
    v.taps = a->mode == GP_RESIZE_NEAREST ? 1 : (int64_t)(2 * gp_resize_reach(a)) + 2;
    v.taps = v.taps < v.in ? v.taps : v.in;
    return v;
}

/* First places, then weights. */
GP_FUNCTION size_t gp_resize_table(const gp_resize *v)
{
    return (size_t)v->out * (sizeof(int64_t) + (size_t)v->taps * sizeof(gp_real));
}

GP_FUNCTION double gp_resize_filter(const gp_resize_axis_attr *a, double d)
{
    const double x = d < 0 ? -d : d, c = a->a;
    if (a->mode == GP_RESIZE_LINEAR)
        return x < 1 ? 1 - x : 0;
    return x <= 1  ? ((c + 2) * x - (c + 3)) * x * x + 1
           : x < 2 ? ((c * x - 5 * c) * x + 8 * c) * x - 4 * c
                   : 0;
}

GP_FUNCTION int64_t gp_resize_clamp(double p, int64_t last)
{
    return p > 0 ? p < (double)last ? (int64_t)p : last : 0;
}

GP_FUNCTION double gp_resize_round(double p, int64_t round)
{
    return round == GP_HALF_DOWN ? ceil(p - 0.5)
           : round == GP_HALF_UP ? floor(p + 0.5)
           : round == GP_DOWN    ? floor(p)
                                 : ceil(p);
}

/* Element o of the result: the weights of its taps; returns the place of the first, or -1 where it
 * is outside and has a value of its own. Beyond the edges the outermost element is repeated. */
GP_FUNCTION int64_t gp_resize_taps(const gp_resize_axis_attr *a, const gp_resize *v, int64_t o,
                                   gp_real *weight)
{
    const double p = ((double)o + a->shift) * a->mul / a->div + a->offset;
    double sum = 0;
    if (a->bounded && !(p >= 0 && p <= (double)(v->in - 1)))
        return -1;
    if (a->mode == GP_RESIZE_NEAREST) {
        weight[0] = 1;
        return gp_resize_clamp(gp_resize_round(p, a->round), v->in - 1);
    }
    const double reach = gp_resize_reach(a), low = floor(p - reach) + 1;
    const int64_t first = gp_resize_clamp(low, v->in - v->taps);
    for (int64_t k = 0; k < v->taps; k++)
        weight[k] = 0;
    for (double j = low; j < p + reach; j++) {
        const double w = gp_resize_filter(a, (j - p) * a->shrink);
        if (a->exclude_outside && (j < 0 || j > (double)(v->in - 1)))
            continue;
        weight[gp_resize_clamp(j, v->in - 1) - first] += (gp_real)w;
        sum += w;
    }
    for (int64_t k = 0; k < v->taps && (a->antialias || a->exclude_outside) && sum != 0; k++)
        weight[k] = (gp_real)((double)weight[k] / sum);
    return first;
}

#endif
