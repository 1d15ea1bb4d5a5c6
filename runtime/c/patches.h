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

/* line[i] = from[at], of this type: f32, or any of 16 bits. */
GP_FUNCTION void gp_patch_take(void *line, int64_t i, const void *from, int64_t at, int type)
{
    if (type == GP_F32)
        ((gp_real *)line)[i] = ((const gp_real *)from)[at];
    else
        ((gp_half *)line)[i] = ((const gp_half *)from)[at];
}

GP_FUNCTION void gp_patch_clear(void *line, int64_t from, int64_t to, int type)
{
    for (int64_t i = from; i < to; i++)
        if (type == GP_F32)
            ((gp_real *)line)[i] = 0;
        else
            ((gp_half *)line)[i] = 0;
}

/* A run of one output row: `line[i]` = what output `at + i` reads through tap (ki, kj). */
GP_FUNCTION void gp_patch_run(void *restrict line, const gp_sliding *v, const void *plane,
                              int64_t row, int64_t at, int64_t count, int64_t ki, int64_t kj,
                              int type)
{
    const int64_t ih = row * v->stride[0] - v->pad[0] + ki * v->dilation[0];
    const int64_t first = kj * v->dilation[1] - v->pad[1], step = v->stride[1];
    gp_range in = {at + count, at + count};
    if (ih >= 0 && ih < v->x->dim[2])
        in = gp_inside(at, at + count, step, first, v->x->dim[3]);
    const int64_t stride = step * v->x->stride[3];
    const int64_t base = ih * v->x->stride[2] + first * v->x->stride[3];
    gp_patch_clear(line, 0, in.from - at, type);
    if (stride == 1)
        for (int64_t i = in.from; i < in.to; i++)
            gp_patch_take(line, i - at, plane, i + base, type);
    else if (stride == 2)
        for (int64_t i = in.from; i < in.to; i++)
            gp_patch_take(line, i - at, plane, i * 2 + base, type);
    else
        for (int64_t i = in.from; i < in.to; i++)
            gp_patch_take(line, i - at, plane, i * stride + base, type);
    gp_patch_clear(line, in.to - at, count, type);
}

/* The same for outputs at .. at + count - 1 of an image with as many outputs as inputs: a shifted
 * copy of the image, with what wraps around the row ends set to 0. */
GP_FUNCTION void gp_patch_moved(void *restrict line, const gp_sliding *v, const void *plane,
                                int64_t at, int64_t count, int64_t ki, int64_t kj, int type)
{
    const int64_t right = kj * v->dilation[1] - v->pad[1], end = at + count;
    const int64_t by = (ki * v->dilation[0] - v->pad[0]) * v->width + right;
    const int64_t edge = gp_least(right < 0 ? -right : right, v->width);
    int64_t low = -by > at ? -by : at, high = gp_least(end, v->outputs - by);
    if (low >= high)
        low = high = end;
    const int64_t size = (int64_t)gp_size(type);
    gp_patch_clear(line, 0, low - at, type);
    if (low < high)
        memcpy((char *)line + (low - at) * size, (const char *)plane + (low + by) * size,
               (size_t)((high - low) * size));
    gp_patch_clear(line, high - at, count, type);
    for (int64_t row = at - at % v->width; edge > 0 && row < end; row += v->width) {
        const int64_t first = right < 0 ? row : row + v->width - edge;
        gp_patch_clear(line, (first > at ? first : at) - at, gp_least(first + edge, end) - at,
                       type);
    }
}

/* Element k of the patches of positions at .. at + n - 1, numbered through all images from `x`, of
 * the type of the images. */
GP_FUNCTION void gp_patch_line_of(void *restrict line, const gp_sliding *v, const void *x,
                                  int64_t k, int64_t at, int64_t n, int type)
{
    const int64_t kj = k % v->kernel[1], ki = k / v->kernel[1] % v->kernel[0];
    const int64_t width = v->plain || v->same ? v->outputs : v->width;
    const int64_t size = (int64_t)gp_size(type), next = v->x->stride[0] * size;
    const char *plane = (const char *)x + k / v->kernel[1] / v->kernel[0] * v->x->stride[1] * size;
    int64_t row = at % v->outputs / width, column = at % width;
    plane += at / v->outputs * next;
    for (int64_t i = 0, count; i < n; i += count) {
        char *to = (char *)line + i * size;
        count = gp_least(n - i, width - column);
        if (v->plain && !v->same)
            for (int64_t j = 0; j < count; j++)
                gp_patch_take(to, j, plane, (column + j) * v->x->stride[3], type);
        else if (v->same)
            gp_patch_moved(to, v, plane, column, count, ki, kj, type);
        else
            gp_patch_run(to, v, plane, row, column, count, ki, kj, type);
        column = 0;
        if (++row * width < v->outputs)
            continue;
        row = 0;
        plane += next;
    }
}

GP_FUNCTION void gp_patch_line(gp_real *restrict line, const gp_sliding *v, const gp_real *x,
                               int64_t k, int64_t at, int64_t n)
{
    gp_patch_line_of(line, v, x, k, at, n, GP_F32);
}

#endif
