/* The gradients of pooling: maxpool2d_grad is told which place each window took, avgpool2d_grad
 * needs the sizes alone. Windows may overlap, so a plane is the task of one thread, which adds in
 * the order of the outputs. */
#ifndef GP_POOL_GRAD_H
#define GP_POOL_GRAD_H

#include "pool.h"

enum {
    GP_POOL_PLANE = GP_BLOCK(4096, 150) /* elements of a plane that is buffered and then streamed */
};

/* The geometry that the gradients of a plane need. */
typedef struct {
    const gp_tensor *x, *dy; /* x: its gradient, which has its dims */
    int64_t kernel[2], stride[2], pad[2];
    int pairs;   /* windows are two columns wide, adjacent, and inside the image */
    int covered; /* and they cover all elements */
    int threes;  /* windows are those of gp_maxpool_back_3x3 */
} gp_pool_grad;

GP_FUNCTION gp_pool_grad gp_pool_grad_plan(const gp_tensor *x, const gp_tensor *dy,
                                           const int64_t *kernel, const int64_t *stride,
                                           const int64_t *pad, const int64_t *dilation)
{
    gp_pool_grad v = {.x = x, .dy = dy};
    for (int i = 0; i < 2; i++) {
        v.kernel[i] = kernel[i];
        v.stride[i] = stride[i];
        v.pad[i] = pad[i];
    }
    const int64_t rows = (dy->dim[2] - 1) * stride[0] + kernel[0];
    const int gaps = gp_pool_has_gaps(dilation);
    v.pairs = !gaps && kernel[1] == 2 && stride[1] == 2 && stride[0] >= kernel[0] && pad[0] == 0 &&
              pad[1] == 0 && 2 * dy->dim[3] <= x->dim[3] && rows <= x->dim[2];
    v.covered =
        v.pairs && 2 * dy->dim[3] == x->dim[3] && rows == x->dim[2] && stride[0] == kernel[0];
    v.threes = !gaps;
    for (int i = 0; i < 2; i++)
        v.threes &=
            kernel[i] == 3 && stride[i] == 2 && pad[i] == 1 && 2 * dy->dim[i + 2] == x->dim[i + 2];
    return v;
}

#if defined(GP_SHUFFLES)
/* The most frequent case, adjacent windows of two by two: given n outputs, the gradients of the two
 * rows that they read. */
GP_FUNCTION void gp_maxpool_back_2x2(gp_real *restrict to, int64_t width, int64_t n,
                                     const uint8_t *restrict places, const gp_real *restrict up)
{
    for (int64_t i = 0; i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        const gp_zip_lanes given = *(const gp_zip_lanes *)(up + at);
        const gp_zip_mask dy = (gp_zip_mask)given;
        const gp_zip_mask took =
            __builtin_convertvector(*(const gp_zip_bytes *)(places + at), gp_zip_mask);
        gp_zip_lanes *high = (gp_zip_lanes *)(to + 2 * at);
        gp_zip_lanes *low = (gp_zip_lanes *)(to + width + 2 * at);
        const gp_zip_lanes a = (gp_zip_lanes)(dy & (took == 0));
        const gp_zip_lanes b = (gp_zip_lanes)(dy & (took == 1));
        const gp_zip_lanes c = (gp_zip_lanes)(dy & (took == 2));
        const gp_zip_lanes d = (gp_zip_lanes)(dy & (took == 3));
        high[0] = __builtin_shufflevector(a, b, GP_LOW_PAIRS);
        high[1] = __builtin_shufflevector(a, b, GP_HIGH_PAIRS);
        low[0] = __builtin_shufflevector(c, d, GP_LOW_PAIRS);
        low[1] = __builtin_shufflevector(c, d, GP_HIGH_PAIRS);
        gp_pool_ask(up + at);
    }
}

/* What windows of three columns give to a row of x, by column. */
typedef struct {
    gp_zip_lanes left, middle, right;
} gp_pool_three;

/* Adds what windows give to the row whose places begin with `first`. */
GP_FUNCTION void gp_pool_three_take(gp_pool_three *t, const gp_zip_mask *took,
                                    const gp_zip_lanes *given, int first)
{
    const gp_zip_mask dy = (gp_zip_mask)*given;
    t->left += (gp_zip_lanes)(dy & (*took == first));
    t->middle += (gp_zip_lanes)(dy & (*took == first + 1));
    t->right += (gp_zip_lanes)(dy & (*took == first + 2));
}

/* Writes a row: a column between two windows gets from both. */
GP_FUNCTION void gp_pool_three_give(const gp_pool_three *t, gp_real *to)
{
    const gp_zip_lanes none = {0};
    const gp_zip_lanes odd = t->right + __builtin_shufflevector(t->left, none, GP_AFTER);
    ((gp_zip_lanes *)to)[0] = __builtin_shufflevector(t->middle, odd, GP_LOW_PAIRS);
    ((gp_zip_lanes *)to)[1] = __builtin_shufflevector(t->middle, odd, GP_HIGH_PAIRS);
}

/* Windows of three by three, two apart, with a padding of one at the top and left and none
 * elsewhere: vectors of windows go down the plane, and a row shared by two of them gets from both.
 * The last of a vector lacks what the next window gives, so the next vector starts with it. */
GP_FUNCTION void gp_maxpool_back_3x3(const gp_pool_grad *v, const uint8_t *restrict places,
                                     const gp_real *restrict up, gp_real *restrict to)
{
    const int64_t n = v->dy->dim[3], rows = v->dy->dim[2], width = 2 * n;
    for (int64_t at = 0, end = 0; end < n; at = end - 1) {
        at = at + GP_ZIP_LANES <= n ? at : n - GP_ZIP_LANES;
        end = at + GP_ZIP_LANES;
        gp_pool_three above = {0};
        for (int64_t i = 0; i < rows; i++) {
            gp_real *into = to + 2 * i * width + 2 * at;
            gp_pool_three here = {0}, below = {0};
            const gp_zip_lanes given = *(const gp_zip_lanes *)(up + i * n + at);
            const gp_zip_mask took =
                __builtin_convertvector(*(const gp_zip_bytes *)(places + i * n + at), gp_zip_mask);
            gp_pool_three_take(&above, &took, &given, 0);
            gp_pool_three_take(&here, &took, &given, 3);
            gp_pool_three_take(&below, &took, &given, 6);
            if (i > 0)
                gp_pool_three_give(&above, into - width);
            gp_pool_three_give(&here, into);
            above = below;
            gp_pool_ask(up + i * n + at);
        }
        gp_pool_three_give(&above, to + (2 * rows - 1) * width + 2 * at);
    }
}
#endif

/* Special cases for usual sizes. Returns whether one applied. */
GP_FUNCTION int gp_maxpool_back_at_once(const gp_pool_grad *v, const uint8_t *places,
                                        const gp_real *up, gp_real *to)
{
#if defined(GP_SHUFFLES)
    const int64_t width = v->dy->dim[3], height = v->dy->dim[2];
    if (width < GP_ZIP_LANES)
        return 0;
    if (GP_WAY(pool_threes, v->threes)) {
        gp_maxpool_back_3x3(v, places, up, to);
        return 1;
    }
    if (!v->pairs || v->kernel[0] != 2)
        return 0;
    if (!v->covered)
        memset(to, 0, (size_t)(v->x->dim[2] * v->x->dim[3]) * sizeof *to);
    for (int64_t i = 0; i < height; i++)
        gp_maxpool_back_2x2(to + i * v->stride[0] * v->x->dim[3], v->x->dim[3], width,
                            places + i * width, up + i * width);
    return 1;
#else
    (void)v, (void)places, (void)up, (void)to;
    return 0;
#endif
}

/* Scatters the gradients of a plane's outputs to the places that they took. */
GP_FUNCTION void gp_maxpool_back(const gp_pool_grad *v, const gp_maxpool2d_grad_attr *a,
                                 const gp_tensor *places, int64_t plane, gp_real *to)
{
    const int64_t width = v->dy->dim[3], size = v->dy->dim[2] * width, row = v->x->dim[3];
    const int64_t kernel = a->kernel[1], most = a->kernel[0] * kernel;
    const gp_real *up = gp_plane(v->dy, plane);
    const int bytes = places->dtype == GP_U8;
    const uint8_t *byte = (const uint8_t *)places->data + (bytes ? plane * size : 0);
    const int32_t *integer = (const int32_t *)places->data + (bytes ? 0 : plane * size);
    if (bytes && gp_maxpool_back_at_once(v, byte, up, to))
        return;
    memset(to, 0, (size_t)(v->x->dim[2] * row) * sizeof *to);
    for (int64_t k = 0; k < size; k++) {
        const int64_t took = bytes ? byte[k] : integer[k];
        const int64_t i = k / width * a->stride[0] - a->pad[0] + took / kernel * a->dilation[0];
        const int64_t j = k % width * a->stride[1] - a->pad[1] + took % kernel * a->dilation[1];
        if (took >= 0 && took < most) /* else it was all padding */
            to[i * row + j] += up[k];
    }
}

GP_WORKSPACE(maxpool2d_grad)
{
    return gp_is_half(c) ? gp_samples_space(c, 3, NULL) : 0;
}

GP_WAYS(maxpool2d_grad)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c)) {
        gp_samples_ways(c, 3, ways, gp_maxpool2d_grad_ways);
        return;
    }
    const gp_maxpool2d_grad_attr *a = c->attr;
    const gp_pool_grad v =
        gp_pool_grad_plan(&c->out[0], &c->in[1], a->kernel, a->stride, a->pad, a->dilation);
    gp_way(ways, "pool_threes", v.threes);
    gp_stream_ways(ways, "pool_grad_streams", 1, gp_count(&c->out[0]));
}

/* Operands: the places that were taken, dy. */
GP_KERNEL(maxpool2d_grad)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 3, gp_maxpool2d_grad);
    const gp_maxpool2d_grad_attr *a = c->attr;
    const gp_tensor *dx = &c->out[0], *dy = &c->in[1];
    const gp_pool_grad v = gp_pool_grad_plan(dx, dy, a->kernel, a->stride, a->pad, a->dilation);
    const int64_t planes = dx->dim[0] * dx->dim[1], size = dx->dim[2] * dx->dim[3];
    const int streams =
        size <= GP_POOL_PLANE && gp_streams(dx->data, dy->data, NULL, planes * size);
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++) {
        gp_real aside[GP_POOL_PLANE], *at = (gp_real *)dx->data + i * size;
        gp_maxpool_back(&v, a, &c->in[0], i, streams ? aside : at);
        if (GP_WAY(pool_grad_streams, streams))
            gp_stream(at, aside, size, NULL);
        gp_stream_end();
    }
    return GP_OK;
}

/* Adds a row of gradients to the columns of their windows that are inside. */
GP_FUNCTION void gp_avgpool_give(const gp_pool_grad *v, const gp_real *restrict share, int64_t at,
                                 int64_t n, gp_real *restrict to)
{
    const int64_t step = v->stride[1];
    if (v->pairs) {
        gp_zip(to + 2 * at, share, share, n);
        return;
    }
    for (int64_t k = 0; k < v->kernel[1]; k++) {
        const int64_t first = at * step - v->pad[1] + k;
        const gp_range in = gp_inside(0, n, step, first, v->x->dim[3]);
        if (step == 1)
            for (int64_t j = in.from; j < in.to; j++)
                to[first + j] += share[j];
        else
            for (int64_t j = in.from; j < in.to; j++)
                to[first + j * step] += share[j];
    }
}

#if defined(GP_SHUFFLES)
/* The same where windows are adjacent pairs, for all rows of a plane. */
GP_FUNCTION void gp_avgpool_back_pairs(const gp_pool_grad *v, const gp_real *restrict up,
                                       gp_real *restrict to)
{
    const int64_t n = v->dy->dim[3], width = v->x->dim[3];
    const gp_real places = 1 / (gp_real)(2 * v->kernel[0]);
    for (int64_t i = 0; i < v->dy->dim[2]; i++, up += n, to += v->stride[0] * width)
        for (int64_t j = 0; j < n; j += GP_ZIP_LANES) {
            const int64_t at = j + GP_ZIP_LANES <= n ? j : n - GP_ZIP_LANES;
            const gp_zip_lanes share = *(const gp_zip_lanes *)(up + at) * places;
            const gp_zip_lanes low = __builtin_shufflevector(share, share, GP_LOW_PAIRS);
            const gp_zip_lanes high = __builtin_shufflevector(share, share, GP_HIGH_PAIRS);
            gp_pool_ask(up + at);
            for (int64_t k = 0; k < v->kernel[0]; k++) {
                gp_zip_lanes *two = (gp_zip_lanes *)(to + k * width + 2 * at);
                two[0] = low;
                two[1] = high;
            }
        }
}
#endif

GP_FUNCTION void gp_avgpool_back(const gp_pool_grad *v, const gp_avgpool2d_attr *a,
                                 const gp_real *up, gp_real *to)
{
    const int64_t width = v->dy->dim[3], size[2] = {v->x->dim[2], v->x->dim[3]};
    gp_real share[GP_POOL_OUTPUTS];
    if (!v->covered)
        memset(to, 0, (size_t)(size[0] * size[1]) * sizeof *to);
#if defined(GP_SHUFFLES)
    if (v->pairs && width >= GP_ZIP_LANES) {
        gp_avgpool_back_pairs(v, up, to);
        return;
    }
#endif
    for (int64_t i = 0; i < v->dy->dim[2]; i++)
        for (int64_t at = 0; at < width; at += GP_POOL_OUTPUTS) {
            const int64_t n = width - at < GP_POOL_OUTPUTS ? width - at : GP_POOL_OUTPUTS;
            const gp_range rows =
                gp_pool_inside(i * v->stride[0] - v->pad[0], v->kernel[0], size[0]);
            memcpy(share, up + i * width + at, (size_t)n * sizeof *share);
            gp_pool_divide(a, size, i, at, share, 1, n);
            for (int64_t row = rows.from; row < rows.to; row++)
                gp_avgpool_give(v, share, at, n, to + row * size[1]);
        }
}

GP_WORKSPACE(avgpool2d_grad)
{
    return gp_is_half(c) ? gp_samples_space(c, 1, NULL) : 0;
}

GP_WAYS(avgpool2d_grad)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c)) {
        gp_samples_ways(c, 1, ways, gp_avgpool2d_grad_ways);
        return;
    }
    gp_way(ways, "pool_dilated",
           gp_pool_has_gaps(((const gp_avgpool2d_grad_attr *)c->attr)->dilation));
}

GP_KERNEL(avgpool2d_grad)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_by_samples(c, 1, gp_avgpool2d_grad);
    const gp_avgpool2d_grad_attr *a = c->attr;
    const gp_tensor *dy = &c->in[0], *dx = &c->out[0];
    if (GP_WAY(pool_dilated, gp_pool_has_gaps(a->dilation)))
        return gp_dilated_back(c, (gp_dilated){dx, a->kernel, a->stride, a->pad, a->dilation}, dy,
                               a);
    const gp_pool_grad v = gp_pool_grad_plan(dx, dy, a->kernel, a->stride, a->pad, a->dilation);
    const int64_t planes = dx->dim[0] * dx->dim[1], size = dx->dim[2] * dx->dim[3];
    GP_PARALLEL(c->run, planes * size > 8192)
    for (int64_t i = 0; i < planes; i++)
        gp_avgpool_back(&v, a, gp_plane(dy, i), (gp_real *)dx->data + i * size);
    return GP_OK;
}

#endif
