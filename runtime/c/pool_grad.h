/* The gradients of pooling: maxpool2d_grad finds the largest of each window again, avgpool2d_grad
 * needs the sizes alone. Windows may overlap, so a plane is the work of one thread, which adds in
 * the order of the outputs. */
#ifndef GP_POOL_GRAD_H
#define GP_POOL_GRAD_H

#include "pool.h"

typedef gp_maxpool2d_attr gp_maxpool2d_grad_attr;
typedef gp_avgpool2d_attr gp_avgpool2d_grad_attr;

enum {
    GP_POOL_OUTPUTS = 128, /* that are looked at side by side */
    GP_POOL_PLANE = 4096   /* elements of a plane that is made aside and then stored */
};

/* What outputs of a range see through place k of the window. */
GP_FUNCTION void gp_maxpool_look(gp_real *restrict best, int32_t *restrict found,
                                 const gp_real *restrict from, gp_range in, int64_t step, int32_t k)
{
    for (int64_t j = in.from; j < in.to; j++) {
        const gp_real v = from[j * step], old = best[j];
        const int32_t had = found[j];
        const int better = (had < 0) | (v > old) | ((v != v) & (old == old));
        best[j] = better ? v : old;
        found[j] = better ? k : had;
    }
}

/* Of outputs at .. at + n - 1 of row i: which place of its window each one took, or -1. The first
 * of the largest, or the first NaN: as the way forward chose. */
GP_FUNCTION void gp_maxpool_found(const gp_tensor *x, const gp_maxpool2d_attr *a,
                                  const gp_real *plane, int64_t i, int64_t at, int64_t n,
                                  int32_t *restrict found)
{
    gp_real best[GP_POOL_OUTPUTS];
    for (int64_t j = 0; j < n; j++) {
        best[j] = -(gp_real)INFINITY;
        found[j] = -1;
    }
    for (int64_t k = 0; k < a->kernel[0] * a->kernel[1]; k++) {
        const int64_t ih = i * a->stride[0] - a->pad[0] + k / a->kernel[1];
        const int64_t first = k % a->kernel[1] - a->pad[1];
        if (ih < 0 || ih >= x->dim[2])
            continue;
        const gp_range in = gp_inside(0, n, a->stride[1], at * a->stride[1] + first, x->dim[3]);
        const int64_t step = a->stride[1] * x->stride[3];
        const gp_real *from = plane + ih * x->stride[2] + first * x->stride[3] + at * step;
        if (step == 1)
            gp_maxpool_look(best, found, from, in, 1, (int32_t)k);
        else if (step == 2)
            gp_maxpool_look(best, found, from, in, 2, (int32_t)k);
        else
            gp_maxpool_look(best, found, from, in, step, (int32_t)k);
    }
}

/* Whether windows are two columns wide, side by side, and lie within the image. */
GP_FUNCTION int gp_maxpool_pairs(const gp_tensor *x, const gp_tensor *dy,
                                 const gp_maxpool2d_attr *a)
{
    return a->kernel[1] == 2 && a->stride[1] == 2 && a->stride[0] >= a->kernel[0] &&
           a->pad[0] == 0 && a->pad[1] == 0 && 2 * dy->dim[3] <= x->dim[3] &&
           (dy->dim[2] - 1) * a->stride[0] + a->kernel[0] <= x->dim[2];
}

/* Gives the gradients of n outputs to the places that they took. The first place of the first
 * output's window is to[at], which may lie outside. */
GP_FUNCTION void gp_maxpool_give(const gp_tensor *x, const gp_maxpool2d_attr *a, int pairs,
                                 const int32_t *restrict found, const gp_real *restrict up,
                                 int64_t n, gp_real *restrict to, int64_t at)
{
    const int32_t width = (int32_t)a->kernel[1];
    for (int32_t k = 0; pairs && k < (int32_t)a->kernel[0]; k++) { /* each is given to once */
        gp_real *restrict pair = to + at + k * x->dim[3];
        for (int64_t j = 0; j < n; j++) {
            pair[2 * j] = found[j] == 2 * k ? up[j] : 0;
            pair[2 * j + 1] = found[j] == 2 * k + 1 ? up[j] : 0;
        }
    }
    for (int64_t j = 0; j < n && !pairs; j++)
        if (found[j] >= 0)
            to[at + found[j] / width * x->dim[3] + j * a->stride[1] + found[j] % width] += up[j];
}

GP_FUNCTION void gp_maxpool_back(const gp_tensor *x, const gp_tensor *dy,
                                 const gp_maxpool2d_attr *a, const gp_real *plane,
                                 const gp_real *up, gp_real *to)
{
    int32_t found[GP_POOL_OUTPUTS];
    const int pairs = gp_maxpool_pairs(x, dy, a);
    memset(to, 0, (size_t)(x->dim[2] * x->dim[3]) * sizeof *to);
    for (int64_t i = 0; i < dy->dim[2]; i++)
        for (int64_t at = 0; at < dy->dim[3]; at += GP_POOL_OUTPUTS) {
            const int64_t left = dy->dim[3] - at,
                          n = left < GP_POOL_OUTPUTS ? left : GP_POOL_OUTPUTS;
            const int64_t row = i * a->stride[0] - a->pad[0],
                          column = at * a->stride[1] - a->pad[1];
            gp_maxpool_found(x, a, plane, i, at, n, found);
            gp_maxpool_give(x, a, pairs, found, up + i * dy->dim[3] + at, n, to,
                            row * x->dim[3] + column);
        }
}

GP_KERNEL(maxpool2d_grad)
{
    const gp_tensor *x = &c->in[0], *dy = &c->in[1];
    const int64_t planes = x->dim[0] * x->dim[1], size = x->dim[2] * x->dim[3];
    gp_real *dx = c->out[0].data;
    const int streams = size <= GP_POOL_PLANE && gp_streams(dx, x->data, NULL, planes * size);
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        gp_real aside[GP_POOL_PLANE], *to = streams ? aside : dx + i * size;
        gp_maxpool_back(x, dy, c->attr, gp_plane(x, i), gp_plane(dy, i), to);
        if (streams)
            gp_stream(dx + i * size, aside, size, gp_plane(x, i) + size);
        gp_stream_end();
    }
    return GP_OK;
}

GP_FUNCTION void gp_avgpool_back(const gp_tensor *dx, const gp_tensor *dy,
                                 const gp_avgpool2d_attr *a, const gp_real *up, gp_real *to)
{
    const int64_t height = dx->dim[2], width = dx->dim[3], all = a->count_include_pad;
    for (int64_t i = 0; i < dy->dim[2]; i++)
        for (int64_t j = 0; j < dy->dim[3]; j++) {
            const int64_t top = i * a->stride[0] - a->pad[0], left = j * a->stride[1] - a->pad[1];
            const int64_t rows = gp_pool_count(top, a->kernel[0], all ? -a->pad[0] : 0,
                                               height + (all ? a->pad[2] : 0));
            const int64_t columns = gp_pool_count(left, a->kernel[1], all ? -a->pad[1] : 0,
                                                  width + (all ? a->pad[3] : 0));
            const gp_real share = up[i * dy->dim[3] + j] / (gp_real)(rows * columns);
            for (int64_t ih = top < 0 ? 0 : top; ih < top + a->kernel[0] && ih < height; ih++)
                for (int64_t iw = left < 0 ? 0 : left; iw < left + a->kernel[1] && iw < width; iw++)
                    to[ih * width + iw] += share;
        }
}

GP_KERNEL(avgpool2d_grad)
{
    const gp_tensor *dy = &c->in[0], *dx = &c->out[0];
    const int64_t planes = dx->dim[0] * dx->dim[1], size = dx->dim[2] * dx->dim[3];
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        gp_real *to = (gp_real *)dx->data + i * size;
        memset(to, 0, (size_t)size * sizeof *to);
        gp_avgpool_back(dx, dy, c->attr, gp_plane(dy, i), to);
    }
    return GP_OK;
}

#endif
