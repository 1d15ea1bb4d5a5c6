/* Resizes images [N, C, H, W], up or down, by nearest neighbour or linear interpolation. The sizes
 * of operand and output give the factor. */
#ifndef GP_UPSAMPLE_H
#define GP_UPSAMPLE_H

#include "between.h"
#include "by_samples.h"
#include "settings.h"

enum { GP_NEAREST, GP_BILINEAR };

GP_FUNCTION void gp_upsample_row(const gp_tensor *x, const gp_tensor *y, const gp_upsample_attr *a,
                                 const gp_real *plane, int64_t row, gp_real *to)
{
    const int64_t step = x->stride[3], width = y->dim[3];
    if (a->mode == GP_NEAREST) {
        const gp_real *from = plane + row * x->dim[2] / y->dim[2] * x->stride[2];
        for (int64_t j = 0; j < width; j++)
            to[j * y->stride[3]] = from[j * x->dim[3] / width * step];
        return;
    }
    const gp_between v = gp_upsample_place(row, x->dim[2], y->dim[2], a->align_corners);
    const gp_real *above = plane + v.low * x->stride[2], *below = plane + v.high * x->stride[2];
    for (int64_t j = 0; j < width; j++) {
        const gp_between h = gp_upsample_place(j, x->dim[3], width, a->align_corners);
        const gp_real top =
            above[h.low * step] + h.part * (above[h.high * step] - above[h.low * step]);
        const gp_real bottom =
            below[h.low * step] + h.part * (below[h.high * step] - below[h.low * step]);
        to[j * y->stride[3]] = top + v.part * (bottom - top);
    }
}

GP_WORKSPACE(upsample)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(upsample)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c))
        gp_samples_ways(c, 1, ways, gp_upsample_ways);
}

GP_KERNEL(upsample)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_upsample);
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    const int64_t rows = y->dim[2], channels = y->dim[1], count = y->dim[0] * channels * rows;
    GP_PARALLEL(c->run, gp_count(y) > 32768)
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = i / rows / channels, channel = i / rows % channels, row = i % rows;
        gp_upsample_row(x, y, c->attr,
                        (const gp_real *)x->data + n * x->stride[0] + channel * x->stride[1], row,
                        (gp_real *)y->data + n * y->stride[0] + channel * y->stride[1] +
                            row * y->stride[2]);
    }
    return GP_OK;
}

/* Each element of dy is added to the elements it was interpolated from: a plane is the task of one
 * thread. */
GP_FUNCTION void gp_upsample_back(const gp_tensor *dy, const gp_tensor *dx,
                                  const gp_upsample_attr *a, const gp_real *up, gp_real *to)
{
    const int64_t height = dy->dim[2], width = dy->dim[3], step = dx->dim[3];
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) {
            const gp_real d = up[i * width + j];
            if (a->mode == GP_NEAREST) {
                to[i * dx->dim[2] / height * step + j * step / width] += d;
                continue;
            }
            const gp_between v = gp_upsample_place(i, dx->dim[2], height, a->align_corners);
            const gp_between h = gp_upsample_place(j, step, width, a->align_corners);
            to[v.low * step + h.low] += d * (1 - v.part) * (1 - h.part);
            to[v.low * step + h.high] += d * (1 - v.part) * h.part;
            to[v.high * step + h.low] += d * v.part * (1 - h.part);
            to[v.high * step + h.high] += d * v.part * h.part;
        }
}

GP_WORKSPACE(upsample_grad)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(upsample_grad)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c))
        gp_samples_ways(c, 1, ways, gp_upsample_grad_ways);
}

GP_KERNEL(upsample_grad)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_upsample_grad);
    const gp_tensor *dy = &c->in[0], *dx = &c->out[0];
    const int64_t planes = dx->dim[0] * dx->dim[1], size = dx->dim[2] * dx->dim[3];
    const int64_t from = dy->dim[2] * dy->dim[3];
    GP_PARALLEL(c->run, planes * from > 8192)
    for (int64_t i = 0; i < planes; i++) {
        gp_real *to = (gp_real *)dx->data + i * size;
        memset(to, 0, (size_t)size * sizeof *to);
        gp_upsample_back(dy, dx, c->attr, (const gp_real *)dy->data + i * from, to);
    }
    return GP_OK;
}

#endif
