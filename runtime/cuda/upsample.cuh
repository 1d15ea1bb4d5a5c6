/* Resizes images [N, C, H, W], up or down, by nearest neighbour or linear interpolation. The sizes
 * of operand and output give the factor. One thread per element of the result: the gradient gathers
 * from the outputs an element went into, in order. */
#ifndef GP_UPSAMPLE_CUH
#define GP_UPSAMPLE_CUH

#include "base.cuh"

#include "../c/between.h"

enum { GP_NEAREST, GP_BILINEAR };

static __global__ void gp_upsample_elements(gp_tensor x, gp_tensor y, gp_upsample_attr a,
                                            int64_t count)
{
    const int64_t height = y.dim[2], width = y.dim[3], channels = y.dim[1];
    for (GP_EACH(k, count)) {
        const int64_t j = k % width, i = k / width % height, plane = k / width / height;
        const int64_t n = plane / channels, channel = plane % channels;
        const gp_reals from =
            gp_reals_from(gp_reals_of(&x), n * x.stride[0] + channel * x.stride[1]);
        const gp_reals to = gp_reals_of(&y);
        const int64_t own =
            n * y.stride[0] + channel * y.stride[1] + i * y.stride[2] + j * y.stride[3];
        if (a.mode == GP_NEAREST) {
            to.put(own,
                   from[i * x.dim[2] / height * x.stride[2] + j * x.dim[3] / width * x.stride[3]]);
            continue;
        }
        const gp_between v = gp_upsample_place(i, x.dim[2], height, a.align_corners);
        const gp_between h = gp_upsample_place(j, x.dim[3], width, a.align_corners);
        const gp_reals above = gp_reals_from(from, v.low * x.stride[2]);
        const gp_reals below = gp_reals_from(from, v.high * x.stride[2]);
        const int64_t low = h.low * x.stride[3], high = h.high * x.stride[3];
        const gp_real top = above[low] + h.part * (above[high] - above[low]);
        const gp_real bottom = below[low] + h.part * (below[high] - below[low]);
        to.put(own, top + v.part * (bottom - top));
    }
}

GP_KERNEL(upsample)
{
    const int64_t count = gp_count(&c->out[0]);
    const unsigned block = gp_block_of(count);
    GP_LAUNCH(c, gp_upsample_elements, gp_blocks(count, block), block, 0, c->in[0], c->out[0],
              *(const gp_upsample_attr *)c->attr, count);
    return GP_OK;
}

/* Outputs from .. to - 1 of an axis are all that may read element i: those at it and at its
 * neighbours, with a margin of one for rounding. */
GP_DEVICE void gp_upsample_span(int64_t i, int64_t in, int64_t out, int64_t *from, int64_t *to)
{
    const double step = in > 1 && out > 1 ? (double)out / (double)in : (double)out;
    const double corner = in > 1 && out > 1 ? (double)(out - 1) / (double)(in - 1) : (double)out;
    const double least = step < corner ? step : corner, most = step < corner ? corner : step;
    const double low = (double)(i - 2) * least - 2, high = (double)(i + 2) * most + 2;
    *from = i < 2 || low < 0 ? 0 : (int64_t)low;
    *to = i + 2 >= in || high > (double)out ? out : (int64_t)high;
}

/* The weight of element i in output o of an axis: as its low neighbour, and as its high. */
GP_DEVICE void gp_upsample_share(int64_t o, int64_t in, int64_t out, gp_upsample_attr a, int64_t i,
                                 gp_real share[2])
{
    if (a.mode == GP_NEAREST) {
        share[0] = o * in / out == i;
        share[1] = 0;
        return;
    }
    const gp_between place = gp_upsample_place(o, in, out, a.align_corners);
    share[0] = place.low == i ? 1 - place.part : 0;
    share[1] = place.high == i ? place.part : 0;
}

static __global__ void gp_upsample_gather(gp_tensor dy, gp_tensor dx, gp_upsample_attr a,
                                          int64_t count)
{
    const int64_t height = dx.dim[2], width = dx.dim[3], rows = dy.dim[2], columns = dy.dim[3];
    for (GP_EACH(k, count)) {
        const int64_t j = k % width, i = k / width % height, plane = k / width / height;
        const gp_reals up = gp_reals_from(gp_reals_of(&dy), plane * rows * columns);
        int64_t top, bottom, left, right;
        gp_upsample_span(i, height, rows, &top, &bottom);
        gp_upsample_span(j, width, columns, &left, &right);
        gp_real sum = 0, v[2], h[2];
        for (int64_t row = top; row < bottom; row++) {
            gp_upsample_share(row, height, rows, a, i, v);
            if (v[0] == 0 && v[1] == 0)
                continue;
            for (int64_t column = left; column < right; column++) {
                gp_upsample_share(column, width, columns, a, j, h);
                const gp_real d = up[row * columns + column];
                for (int side = 0; side < 4; side++)
                    if (v[side / 2] != 0 && h[side % 2] != 0)
                        sum += d * v[side / 2] * h[side % 2];
            }
        }
        gp_reals_of(&dx).put(k, sum);
    }
}

GP_KERNEL(upsample_grad)
{
    const int64_t count = gp_count(&c->out[0]);
    const unsigned block = gp_block_of(count);
    GP_LAUNCH(c, gp_upsample_gather, gp_blocks(count, block), block, 0, c->in[0], c->out[0],
              *(const gp_upsample_grad_attr *)c->attr, count);
    return GP_OK;
}

GP_TAKES_HALF(upsample)
GP_TAKES_HALF(upsample_grad)

#endif
