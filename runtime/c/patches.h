/* Patches of images (im2col): what the window reads at each output position, line by line. */
#ifndef GP_PATCHES_H
#define GP_PATCHES_H

#include "gemm.h"
#include "window.h"

/* Images and the window that slides over them, from output to output. */
typedef struct {
    const gp_tensor *x;
    int64_t stride[2], pad[2], dilation[2], kernel[2];
    int64_t outputs, width; /* output positions of an image, and in a row of it */
    int plain;              /* a 1 x 1 window over all of a contiguous image */
    int same;               /* contiguous images, and as many outputs as inputs, in their order */
} gp_sliding;

static GP_NOINLINE gp_sliding gp_sliding_of(const gp_tensor *x, const gp_tensor *y,
                                            const int64_t *kernel, const int64_t *stride,
                                            const int64_t *pad, const int64_t *dilation)
{
    gp_sliding v = {.x = x, .outputs = y->dim[2] * y->dim[3], .width = y->dim[3]};
    v.plain = x->stride[2] == x->dim[3] * x->stride[3] || x->dim[2] == 1;
    v.same = x->stride[2] == x->dim[3] && x->stride[3] == 1;
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = kernel[i];
        v.stride[i] = stride[i];
        v.pad[i] = pad[i];
        v.dilation[i] = dilation[i];
        v.plain = v.plain && kernel[i] == 1 && stride[i] == 1 && pad[i] == 0 &&
                  x->dim[2 + i] == y->dim[2 + i];
        v.same = v.same && stride[i] == 1 && x->dim[2 + i] == y->dim[2 + i];
    }
    return v;
}

/* A run of one output row: `line[i]` = what output `at + i` reads through tap (ki, kj). */
GP_FUNCTION void gp_patch_run(gp_real *restrict line, const gp_sliding *v, const gp_real *plane,
                              int64_t row, int64_t at, int64_t count, int64_t ki, int64_t kj)
{
    const int64_t ih = row * v->stride[0] - v->pad[0] + ki * v->dilation[0];
    const int64_t first = kj * v->dilation[1] - v->pad[1], step = v->stride[1];
    gp_range in = {at + count, at + count};
    if (ih >= 0 && ih < v->x->dim[2])
        in = gp_inside(at, at + count, step, first, v->x->dim[3]);
    const gp_real *from = plane + ih * v->x->stride[2];
    const int64_t stride = step * v->x->stride[3], base = first * v->x->stride[3];
    for (int64_t i = at; i < in.from; i++)
        line[i - at] = 0;
    if (stride == 1)
        for (int64_t i = in.from; i < in.to; i++)
            line[i - at] = from[i + base];
    else if (stride == 2)
        for (int64_t i = in.from; i < in.to; i++)
            line[i - at] = from[i * 2 + base];
    else
        for (int64_t i = in.from; i < in.to; i++)
            line[i - at] = from[i * stride + base];
    for (int64_t i = in.to; i < at + count; i++)
        line[i - at] = 0;
}

/* The same for outputs at .. at + count - 1 of an image with as many outputs as inputs: a shifted
 * copy of the image, with what wraps around the row ends set to 0. */
GP_FUNCTION void gp_patch_moved(gp_real *restrict line, const gp_sliding *v, const gp_real *plane,
                                int64_t at, int64_t count, int64_t ki, int64_t kj)
{
    const int64_t right = kj * v->dilation[1] - v->pad[1], end = at + count;
    const int64_t by = (ki * v->dilation[0] - v->pad[0]) * v->width + right;
    const int64_t edge = gp_least(right < 0 ? -right : right, v->width);
    int64_t low = -by > at ? -by : at, high = gp_least(end, v->outputs - by);
    if (low >= high)
        low = high = end;
    for (int64_t i = at; i < low; i++)
        line[i - at] = 0;
    if (low < high)
        memcpy(line + (low - at), plane + (low + by), (size_t)(high - low) * sizeof *line);
    for (int64_t i = high; i < end; i++)
        line[i - at] = 0;
    for (int64_t row = at - at % v->width; edge > 0 && row < end; row += v->width) {
        const int64_t first = right < 0 ? row : row + v->width - edge;
        for (int64_t i = first > at ? first : at; i < first + edge && i < end; i++)
            line[i - at] = 0;
    }
}

/* Element k of the patches of positions at .. at + n - 1, numbered through all images from `x`. */
GP_FUNCTION void gp_patch_line(gp_real *restrict line, const gp_sliding *v, const gp_real *x,
                               int64_t k, int64_t at, int64_t n)
{
    const int64_t kj = k % v->kernel[1], ki = k / v->kernel[1] % v->kernel[0];
    const int64_t width = v->plain || v->same ? v->outputs : v->width;
    const gp_real *plane = x + k / v->kernel[1] / v->kernel[0] * v->x->stride[1];
    int64_t row = at % v->outputs / width, column = at % width;
    plane += at / v->outputs * v->x->stride[0];
    for (int64_t i = 0, count; i < n; i += count) {
        count = gp_least(n - i, width - column);
        if (v->plain && !v->same)
            for (int64_t j = 0; j < count; j++)
                line[i + j] = plane[(column + j) * v->x->stride[3]];
        else if (v->same)
            gp_patch_moved(line + i, v, plane, column, count, ki, kj);
        else
            gp_patch_run(line + i, v, plane, row, column, count, ki, kj);
        column = 0;
        if (++row * width < v->outputs)
            continue;
        row = 0;
        plane += v->x->stride[0];
    }
}

#endif
