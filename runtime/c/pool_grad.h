/* The gradients of pooling: maxpool2d_grad finds the largest of each window again, avgpool2d_grad
 * needs the sizes alone. Windows may overlap, so a plane is the work of one thread, which adds in
 * the order of the outputs. */
#ifndef GP_POOL_GRAD_H
#define GP_POOL_GRAD_H

#include "pool.h"

typedef gp_maxpool2d_attr gp_maxpool2d_grad_attr;
typedef gp_avgpool2d_attr gp_avgpool2d_grad_attr;

enum { GP_POOL_OUTPUTS = 128 }; /* that are looked at side by side */

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
        const gp_range in = gp_inside(at, at + n, a->stride[1], first, x->dim[3]);
        const gp_real *from = plane + ih * x->stride[2] + first * x->stride[3];
        for (int64_t j = in.from; j < in.to; j++) {
            const gp_real v = from[j * a->stride[1] * x->stride[3]], old = best[j - at];
            const int32_t had = found[j - at];
            const int better = (had < 0) | (v > old) | ((v != v) & (old == old));
            best[j - at] = better ? v : old;
            found[j - at] = better ? (int32_t)k : had;
        }
    }
}

GP_FUNCTION void gp_maxpool_back(const gp_tensor *x, const gp_tensor *dy,
                                 const gp_maxpool2d_attr *a, const gp_real *plane,
                                 const gp_real *up, gp_real *to)
{
    int32_t found[GP_POOL_OUTPUTS];
    for (int64_t i = 0; i < dy->dim[2]; i++)
        for (int64_t at = 0; at < dy->dim[3]; at += GP_POOL_OUTPUTS) {
            const int64_t left = dy->dim[3] - at,
                          n = left < GP_POOL_OUTPUTS ? left : GP_POOL_OUTPUTS;
            const int32_t width = (int32_t)a->kernel[1];
            gp_maxpool_found(x, a, plane, i, at, n, found);
            for (int64_t j = 0; j < n; j++) {
                const int64_t ih = i * a->stride[0] - a->pad[0] + found[j] / width;
                const int64_t iw = (at + j) * a->stride[1] - a->pad[1] + found[j] % width;
                if (found[j] >= 0)
                    to[ih * x->dim[3] + iw] += up[i * dy->dim[3] + at + j];
            }
        }
}

GP_KERNEL(maxpool2d_grad)
{
    const gp_tensor *x = &c->in[0], *dy = &c->in[1];
    const int64_t planes = x->dim[0] * x->dim[1], size = x->dim[2] * x->dim[3];
    gp_real *dx = c->out[0].data;
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        memset(dx + i * size, 0, (size_t)size * sizeof *dx);
        gp_maxpool_back(x, dy, c->attr, gp_plane(x, i), gp_plane(dy, i), dx + i * size);
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
