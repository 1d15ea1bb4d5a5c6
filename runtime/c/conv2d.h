/* Convolution of images [N, C, H, W] with weights [O, C / groups, KH, KW].
 *
 * A matrix product for each image and group: weights [O, K] times the patches [K, OH * OW], where
 * the patches of one tile at a time are packed straight from the image. One channel for each
 * group (depthwise) has too little to multiply for that: there, rows are summed directly.
 */
#ifndef GP_CONV2D_H
#define GP_CONV2D_H

#include "gemm.h"
#include "window.h"

typedef struct {
    int64_t stride[2], pad[4], dilation[2], groups; /* pad: top, left, bottom, right */
} gp_conv2d_attr;

/* An image and the window that slides over it. */
typedef struct {
    const gp_tensor *x;
    const int64_t *stride, *pad, *dilation;
} gp_sliding;

/* One convolution and how it is cut into tiles. */
typedef struct {
    const gp_tensor *x, *w, *b, *y;
    const gp_conv2d_attr *a;
    int64_t rows, depth;     /* of one group's weights: output channels, K */
    int64_t span;            /* outputs that lie evenly: all of a channel, or one row of it */
    int64_t height, columns; /* of a tile: output channels, places */
    int64_t down, across;    /* tiles of a group: by channels, by places */
} gp_conv;

GP_FUNCTION gp_conv gp_conv_plan(const gp_call *c)
{
    gp_conv v = {.x = &c->in[0], .w = &c->in[1], .b = &c->in[2], .y = &c->out[0], .a = c->attr};
    const gp_tensor *y = v.y;
    const int even = y->dim[2] == 1 || y->stride[2] == y->dim[3] * y->stride[3];
    v.rows = y->dim[1] / v.a->groups;
    v.depth = gp_span(v.w, 1, 4);
    v.span = even ? y->dim[2] * y->dim[3] : y->dim[3];
    v.columns = gp_least(v.span, GP_NC);
    v.across = gp_ceil_div(v.span, v.columns) * (y->dim[2] * y->dim[3] / v.span);
    v.height = v.rows;
    if (y->dim[0] * v.a->groups * v.across < 16) /* too few to keep threads busy */
        v.height = gp_least(v.rows, GP_MC);
    v.down = gp_ceil_div(v.rows, v.height);
    return v;
}

/* A stretch of one output row: `line[i]` = what output `at + i` sees through place (ki, kj). */
GP_FUNCTION void gp_conv_stretch(gp_real *restrict line, const gp_sliding *v, const gp_real *plane,
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
    if (stride == 1 && in.to > in.from)
        memcpy(line + in.from - at, from + in.from + base,
               (size_t)(in.to - in.from) * sizeof *line);
    else
        for (int64_t i = in.from; i < in.to; i++)
            line[i - at] = from[i * stride + base];
    for (int64_t i = in.to; i < at + count; i++)
        line[i - at] = 0;
}

/* Packs rows p0 .. p0 + k - 1 of the patches of places at .. at + n - 1. */
GP_FUNCTION void gp_conv_pack(gp_real *panel, const gp_conv *v, const gp_real *image, int64_t p0,
                              int64_t k, int64_t at, int64_t n)
{
    const int64_t kh = v->w->dim[2], kw = v->w->dim[3], width = v->y->dim[3];
    const gp_sliding window = {v->x, v->a->stride, v->a->pad, v->a->dilation};
    gp_real line[GP_NC];
    for (int64_t p = 0; p < k; p++) {
        const int64_t kj = (p0 + p) % kw, ki = (p0 + p) / kw % kh, channel = (p0 + p) / kw / kh;
        const gp_real *plane = image + channel * v->x->stride[1];
        for (int64_t i = 0; i < n;) {
            const int64_t row = (at + i) / width, column = (at + i) % width;
            const int64_t count = gp_least(n - i, width - column);
            gp_conv_stretch(line + i, &window, plane, row, column, count, ki, kj);
            i += count;
        }
        gp_pack_row(panel, line, n, p, k);
    }
}

GP_FUNCTION void gp_fill_rows(gp_matrix y, const gp_real *bias, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            y.at[i * y.row + j * y.col] = bias[i];
}

GP_FUNCTION void gp_conv_tile(const gp_conv *v, int64_t unit, gp_real *work)
{
    const gp_tensor *x = v->x, *y = v->y;
    const int64_t parts = gp_ceil_div(v->span, v->columns);
    const int64_t stretch = unit % v->across / parts, part = unit % v->across % parts;
    const int64_t i0 = unit / v->across % v->down * v->height;
    const int64_t group = unit / v->across / v->down % v->a->groups;
    const int64_t n = unit / v->across / v->down / v->a->groups;
    const int64_t at = stretch * v->span + part * v->columns;
    const int64_t columns = gp_least(v->columns, v->span - part * v->columns);
    const int64_t height = gp_least(v->height, v->rows - i0), out = group * v->rows + i0;

    const gp_real *image =
        (gp_real *)x->data + n * x->stride[0] + group * v->w->dim[1] * x->stride[1];
    const gp_matrix w = {(gp_real *)v->w->data + out * v->depth, v->depth, 1};
    const gp_matrix tile = {(gp_real *)y->data + n * y->stride[0] + out * y->stride[1] +
                                at / y->dim[3] * y->stride[2] + at % y->dim[3] * y->stride[3],
                            y->stride[1], y->stride[3]};
    gp_real *rows = work, *patches = work + gp_gemm_rows(v->height, v->depth);
    if (v->b->data)
        gp_fill_rows(tile, (const gp_real *)v->b->data + out, height, columns);
    for (int64_t p = 0; p < v->depth; p += GP_KC) {
        const int64_t k = gp_least(GP_KC, v->depth - p);
        gp_conv_pack(patches, v, image, p, k, at, columns);
        for (int64_t i = 0; i < height; i += GP_MC) {
            const int64_t m = gp_least(GP_MC, height - i);
            gp_pack_a(rows, gp_matrix_at(w, i, p), m, k);
            gp_block_product(gp_matrix_at(tile, i, 0), m, columns, k, rows, patches,
                             p > 0 || v->b->data);
        }
    }
}

/* One output channel that sees one input channel. */
GP_FUNCTION void gp_depthwise_plane(const gp_conv *v, int64_t n, int64_t out)
{
    const gp_tensor *x = v->x, *y = v->y;
    const gp_real *plane =
        (const gp_real *)x->data + n * x->stride[0] + out / v->rows * x->stride[1];
    const gp_real *w = (const gp_real *)v->w->data + out * v->depth;
    const gp_real bias = v->b->data ? ((const gp_real *)v->b->data)[out] : 0;
    const int64_t step = v->a->stride[1] * x->stride[3], kw = v->w->dim[3];
    for (int64_t row = 0; row < y->dim[2]; row++) {
        gp_real *restrict to =
            (gp_real *)y->data + n * y->stride[0] + out * y->stride[1] + row * y->stride[2];
        for (int64_t j = 0; j < y->dim[3]; j++)
            to[j * y->stride[3]] = bias;
        for (int64_t p = 0; p < v->depth; p++) {
            const int64_t ih = row * v->a->stride[0] - v->a->pad[0] + p / kw * v->a->dilation[0];
            const int64_t first = p % kw * v->a->dilation[1] - v->a->pad[1];
            if (ih < 0 || ih >= x->dim[2])
                continue;
            const gp_range in = gp_inside(0, y->dim[3], v->a->stride[1], first, x->dim[3]);
            const gp_real *restrict from = plane + ih * x->stride[2] + first * x->stride[3];
            const gp_real scale = w[p];
            if (step == 1 && y->stride[3] == 1) {
                for (int64_t j = in.from; j < in.to; j++)
                    to[j] += scale * from[j];
            } else {
                for (int64_t j = in.from; j < in.to; j++)
                    to[j * y->stride[3]] += scale * from[j * step];
            }
        }
    }
}

GP_WORKSPACE(conv2d)
{
    const gp_conv v = gp_conv_plan(c);
    if (v.w->dim[1] == 1)
        return 0;
    const int64_t columns = gp_least(v.y->dim[2] * v.y->dim[3], GP_NC);
    return (size_t)(gp_gemm_work(v.rows, columns, v.depth) * c->run->threads) * sizeof(gp_real);
}

GP_KERNEL(conv2d)
{
    const gp_conv v = gp_conv_plan(c);
    const int64_t batch = v.y->dim[0], channels = v.y->dim[1];
    if (v.w->dim[1] == 1) {
        GP_PARALLEL(c->run, gp_count(v.y) * v.depth > 32768)
        for (int64_t i = 0; i < batch * channels; i++)
            gp_depthwise_plane(&v, i / channels, i % channels);
        return GP_OK;
    }
    const int64_t units = batch * v.a->groups * v.down * v.across;
    const int64_t own = gp_gemm_work(v.height, v.columns, v.depth);
    GP_PARALLEL(c->run, units > 1 && gp_count(v.y) * v.depth > 32768)
    for (int64_t unit = 0; unit < units; unit++)
        gp_conv_tile(&v, unit, (gp_real *)c->work + gp_thread() * own);
    return GP_OK;
}

#endif
