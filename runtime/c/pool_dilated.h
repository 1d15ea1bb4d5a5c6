/* Pools whose windows have gaps between their places, element by element, and where the largest of
 * any window stands. */
#ifndef GP_POOL_DILATED_H
#define GP_POOL_DILATED_H

#include "settings.h"
#include "window.h"

typedef struct {
    const gp_tensor *x; /* what windows slide over */
    const int64_t *kernel, *stride, *pad, *dilation;
} gp_dilated;

/* Plane i (of N * C) of a tensor. */
GP_FUNCTION gp_real *gp_plane(const gp_tensor *t, int64_t i)
{
    return (gp_real *)t->data + i / t->dim[1] * t->stride[0] + i % t->dim[1] * t->stride[1];
}

/* Where maxpool2d says which place of each window it took: a byte, or an i32 where a window has
 * more places than a byte can count; NULL: nobody reads it. */
GP_FUNCTION const gp_tensor *gp_places_of(const gp_call *c)
{
    return c->outs > 1 && c->out[1].data ? &c->out[1] : NULL;
}

GP_FUNCTION void gp_place_store(const gp_tensor *places, int64_t i, int64_t found)
{
    if (places->dtype == GP_U8)
        ((uint8_t *)places->data)[i] = (uint8_t)found;
    else
        ((int32_t *)places->data)[i] = (int32_t)found;
}

/* Where window o of an axis begins, and which of its places are inside the image, or the padded
 * image where `all` says so. */
GP_FUNCTION gp_range gp_dilated_places(const gp_dilated *v, int axis, int64_t o, int all,
                                       int64_t *first)
{
    const int64_t low = all ? v->pad[axis] : 0, high = all ? v->pad[2 + axis] : 0;
    *first = o * v->stride[axis] - v->pad[axis];
    return gp_inside(0, v->kernel[axis], v->dilation[axis], *first + low,
                     v->x->dim[2 + axis] + low + high);
}

/* Where in its window the element stands that output (row, at) takes: the first of the largest, or
 * the first NaN; -1 where the window is all padding. */
GP_FUNCTION int64_t gp_dilated_largest(const gp_dilated *v, const gp_real *plane, int64_t row,
                                       int64_t at)
{
    int64_t top, left, found = -1;
    const gp_range rows = gp_dilated_places(v, 0, row, 0, &top);
    const gp_range in = gp_dilated_places(v, 1, at, 0, &left);
    gp_real best = 0;
    for (int64_t i = rows.from; i < rows.to; i++)
        for (int64_t j = in.from; j < in.to; j++) {
            const int64_t h = top + i * v->dilation[0], w = left + j * v->dilation[1];
            const gp_real x = plane[h * v->x->stride[2] + w * v->x->stride[3]];
            if (found < 0 || x > best || (x != x && best == best)) {
                best = x;
                found = i * v->kernel[1] + j;
            }
        }
    return found;
}

/* The row and the column of the image where place `found` of the window of output (row, at) lies.
 */
GP_FUNCTION void gp_dilated_at(const gp_dilated *v, int64_t row, int64_t at, int64_t found,
                               int64_t *to)
{
    to[0] = row * v->stride[0] - v->pad[0] + found / v->kernel[1] * v->dilation[0];
    to[1] = at * v->stride[1] - v->pad[1] + found % v->kernel[1] * v->dilation[1];
}

/* One over the number of places that count in the mean of output (row, at). */
GP_FUNCTION gp_real gp_dilated_share(const gp_dilated *v, int64_t row, int64_t at, int all)
{
    int64_t first;
    const gp_range rows = gp_dilated_places(v, 0, row, all, &first);
    const gp_range in = gp_dilated_places(v, 1, at, all, &first);
    return 1 / (gp_real)((rows.to - rows.from) * (in.to - in.from));
}

GP_FUNCTION gp_real gp_dilated_mean(const gp_dilated *v, const gp_real *plane, int64_t row,
                                    int64_t at, int all)
{
    int64_t top, left;
    const gp_range rows = gp_dilated_places(v, 0, row, 0, &top);
    const gp_range in = gp_dilated_places(v, 1, at, 0, &left);
    gp_real sum = 0;
    for (int64_t i = rows.from; i < rows.to; i++)
        for (int64_t j = in.from; j < in.to; j++)
            sum += plane[(top + i * v->dilation[0]) * v->x->stride[2] +
                         (left + j * v->dilation[1]) * v->x->stride[3]];
    return sum * gp_dilated_share(v, row, at, all);
}

/* The largest of a window, and where it stands, where `places` is stored. */
GP_FUNCTION gp_real gp_dilated_most(const gp_dilated *v, const gp_real *plane, int64_t row,
                                    int64_t at, const gp_tensor *places, int64_t i)
{
    const int64_t found = gp_dilated_largest(v, plane, row, at);
    int64_t here[2];
    gp_dilated_at(v, row, at, found, here);
    if (places)
        gp_place_store(places, i, found);
    return plane[here[0] * v->x->stride[2] + here[1] * v->x->stride[3]];
}

/* Means where there are such settings, else the largest. */
GP_FUNCTION int gp_dilated_run(const gp_call *c, gp_dilated v, const gp_avgpool2d_attr *mean)
{
    const gp_tensor *y = &c->out[0], *places = gp_places_of(c);
    const int64_t height = y->dim[2], lines = y->dim[0] * y->dim[1] * height;
    GP_PARALLEL(c->run, gp_count(v.x) > 32768)
    for (int64_t i = 0; i < lines; i++) {
        const gp_real *plane = gp_plane(v.x, i / height);
        gp_real *to = gp_plane(y, i / height) + i % height * y->stride[2];
        for (int64_t j = 0; j < y->dim[3]; j++)
            to[j * y->stride[3]] =
                mean ? gp_dilated_mean(&v, plane, i % height, j, mean->count_include_pad != 0)
                     : gp_dilated_most(&v, plane, i % height, j, places, i * y->dim[3] + j);
    }
    return GP_OK;
}

/* ---- Gradients ------------------------------------------------------------------------------ */

/* What output (row, at) gives to the places of its mean. */
GP_FUNCTION void gp_dilated_give(const gp_dilated *v, int64_t row, int64_t at, gp_real give,
                                 gp_real *to)
{
    int64_t top, left;
    const gp_range rows = gp_dilated_places(v, 0, row, 0, &top);
    const gp_range in = gp_dilated_places(v, 1, at, 0, &left);
    for (int64_t i = rows.from; i < rows.to; i++)
        for (int64_t j = in.from; j < in.to; j++)
            to[(top + i * v->dilation[0]) * v->x->dim[3] + left + j * v->dilation[1]] += give;
}

/* Of means. A plane is the work of one thread, which adds in the order of the outputs. */
GP_FUNCTION int gp_dilated_back(const gp_call *c, gp_dilated v, const gp_tensor *dy,
                                const gp_avgpool2d_attr *mean)
{
    const gp_tensor *dx = &c->out[0];
    const int64_t planes = dx->dim[0] * dx->dim[1], size = dx->dim[2] * dx->dim[3];
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        const gp_real *up = gp_plane(dy, i);
        gp_real *to = (gp_real *)dx->data + i * size;
        memset(to, 0, (size_t)size * sizeof *to);
        for (int64_t k = 0; k < dy->dim[2] * dy->dim[3]; k++) {
            const int64_t row = k / dy->dim[3], at = k % dy->dim[3];
            gp_dilated_give(&v, row, at,
                            up[k] * gp_dilated_share(&v, row, at, mean->count_include_pad != 0),
                            to);
        }
    }
    return GP_OK;
}

#endif
