/* Sampling at points of a grid: which elements along an axis a coordinate reads, with which
 * weights. The axes are independent of each other: a sample is the sum over the products of their
 * taps. */
#ifndef GP_GRID_TAPS_H
#define GP_GRID_TAPS_H

#include "narrow.h"

enum { GP_GRID_BILINEAR, GP_GRID_NEAREST, GP_GRID_BICUBIC };
enum { GP_GRID_ZEROS, GP_GRID_BORDER, GP_GRID_REFLECTION };

/* Elements at[0 .. count - 1], -1 where one is outside and counts as zero; weights, and their
 * derivatives by the coordinate in the grid. */
typedef struct {
    int count;
    int64_t at[4];
    gp_real weight[4], slope[4];
} gp_grid_axis;

typedef struct {
    int64_t mode, padding, align;
} gp_grid_way;

/* A place mirrored at the edges until it is inside, then clamped. The edges are those of the image,
 * half an element from the outermost places, or with `align` these places. *slope: the derivative.
 */
GP_FUNCTION gp_real gp_grid_reflect(gp_real p, int64_t size, int align, gp_real *slope)
{
    const gp_real low = align ? 0 : -(gp_real)0.5, span = (gp_real)(align ? size - 1 : size);
    if (span == 0) {
        *slope = 0;
        return 0;
    }
    const gp_real far = p < low ? low - p : p - low;
    const gp_real turns = (gp_real)floor((double)(far / span)), rest = far - turns * span;
    const int back = (gp_real)floor((double)turns / 2) * 2 != turns;
    *slope *= (p < low) != back ? -1 : 1;
    return back ? span - rest + low : rest + low;
}

/* NaN goes to 0. */
GP_FUNCTION gp_real gp_grid_clamp(gp_real p, int64_t size, gp_real *slope)
{
    const gp_real high = (gp_real)(size - 1);
    if (p > 0 && p < high)
        return p;
    *slope = 0;
    return p >= high ? high : 0;
}

GP_FUNCTION gp_real gp_grid_pad(gp_real p, int64_t size, gp_grid_way way, gp_real *slope)
{
    if (way.padding == GP_GRID_REFLECTION)
        p = gp_grid_reflect(p, size, way.align != 0, slope);
    return way.padding == GP_GRID_ZEROS ? p : gp_grid_clamp(p, size, slope);
}

/* The element at a whole place, or -1. */
GP_FUNCTION int64_t gp_grid_element(gp_real p, int64_t size)
{
    return p >= 0 && p <= (gp_real)(size - 1) ? (int64_t)p : -1;
}

/* Cubic convolution with a = -0.75, at a distance of t after the second of four taps. */
GP_FUNCTION void gp_grid_cubic(gp_real t, gp_grid_axis *taps, gp_real slope)
{
    const gp_real a = -(gp_real)0.75;
    for (int k = 0; k < 4; k++) {
        const gp_real d = t + (gp_real)(1 - k), x = d < 0 ? -d : d;
        const gp_real sign = d < 0 ? -slope : slope;
        const int near = k == 1 || k == 2;
        taps->weight[k] =
            near ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
        taps->slope[k] =
            sign * (near ? (3 * (a + 2) * x - 2 * (a + 3)) * x : (3 * a * x - 10 * a) * x + 8 * a);
    }
}

/* What coordinate `at` of the grid, -1 to 1 over the image, reads along an axis. */
GP_FUNCTION gp_grid_axis gp_grid_taps(gp_real at, int64_t size, gp_grid_way way)
{
    gp_grid_axis taps = {0, {0}, {0}, {0}};
    gp_real slope = (gp_real)(way.align ? size - 1 : size) / 2, none = 0;
    gp_real p = way.align ? (at + 1) / 2 * (gp_real)(size - 1) : ((at + 1) * (gp_real)size - 1) / 2;
    if (way.mode != GP_GRID_BICUBIC)
        p = gp_grid_pad(p, size, way, &slope);
    if (way.mode == GP_GRID_NEAREST) { /* half goes to the even place */
        taps.count = 1;
        taps.weight[0] = 1;
        taps.at[0] = gp_grid_element((gp_real)nearbyint((double)p), size);
        return taps;
    }
    const gp_real first = (gp_real)floor((double)p), t = p - first;
    if (way.mode == GP_GRID_BILINEAR) {
        taps.count = 2;
        taps.weight[0] = 1 - t;
        taps.weight[1] = t;
        taps.slope[0] = -slope;
        taps.slope[1] = slope;
        for (int k = 0; k < 2; k++)
            taps.at[k] = gp_grid_element(first + (gp_real)k, size);
        return taps;
    }
    taps.count = 4;
    gp_grid_cubic(t, &taps, slope);
    for (int k = 0; k < 4; k++)
        taps.at[k] = gp_grid_element(gp_grid_pad(first + (gp_real)(k - 1), size, way, &none), size);
    return taps;
}

/* The taps of point i of a grid [..., 2 or 3] for axes D, H, W of an image or volume: coordinates
 * stand in the order W, H, D. An image has depth 1. */
GP_FUNCTION void gp_grid_point(const gp_real *grid, int axes, const int64_t *size, gp_grid_way way,
                               gp_grid_axis *taps)
{
    const gp_grid_axis whole = {1, {0}, {1}, {0}};
    taps[0] = whole;
    for (int k = 0; k < axes; k++)
        taps[2 - k] = gp_grid_taps(grid[k], size[2 - k], way);
}

/* What a point reads of the plane of x that begins at element `at`, whose axes D, H, W have these
 * strides; with axis >= 0 its derivative by the coordinate of that axis. */
GP_FUNCTION gp_real gp_grid_read(const gp_tensor *x, int64_t at, const int64_t *stride,
                                 const gp_grid_axis *taps, int axis)
{
    gp_real sum = 0;
    for (int d = 0; d < taps[0].count; d++)
        for (int h = 0; h < taps[1].count; h++)
            for (int w = 0; w < taps[2].count; w++) {
                const gp_real z = axis == 0 ? taps[0].slope[d] : taps[0].weight[d];
                const gp_real y = axis == 1 ? taps[1].slope[h] : taps[1].weight[h];
                const gp_real across = axis == 2 ? taps[2].slope[w] : taps[2].weight[w];
                if (taps[0].at[d] >= 0 && taps[1].at[h] >= 0 && taps[2].at[w] >= 0)
                    sum += z * y * across *
                           gp_get_real(x->data,
                                       at + taps[0].at[d] * stride[0] + taps[1].at[h] * stride[1] +
                                           taps[2].at[w] * stride[2],
                                       x->dtype);
            }
    return sum;
}

/* Gives `up` back to what a point has read of a dense plane. */
GP_FUNCTION void gp_grid_give(gp_real *plane, const int64_t *size, const gp_grid_axis *taps,
                              gp_real up)
{
    for (int d = 0; d < taps[0].count; d++)
        for (int h = 0; h < taps[1].count; h++)
            for (int w = 0; w < taps[2].count; w++)
                if (taps[0].at[d] >= 0 && taps[1].at[h] >= 0 && taps[2].at[w] >= 0)
                    plane[(taps[0].at[d] * size[1] + taps[1].at[h]) * size[2] + taps[2].at[w]] +=
                        taps[0].weight[d] * taps[1].weight[h] * taps[2].weight[w] * up;
}

/* Sizes of the axes D, H, W of images or volumes, and the strides. */
GP_FUNCTION int gp_grid_axes(const gp_tensor *x, int64_t *size, int64_t *stride)
{
    const int axes = x->rank - 2;
    size[0] = 1;
    stride[0] = 0;
    for (int k = 0; k < axes; k++) {
        size[2 - k] = x->dim[x->rank - 1 - k];
        stride[2 - k] = x->stride[x->rank - 1 - k];
    }
    return axes;
}

#endif
