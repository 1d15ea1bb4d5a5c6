/* The gradient of convolution by its weights: dw[o][c, ki, kj] sums dy * x over images and places.
 *
 * For each group a product dy [O, places] times the patches' [places, K], image after image. Units
 * of work are tiles of dw, so no two threads add to one number. Patches of some places at a time
 * are laid out in workspace. One channel for each group (depthwise) is summed directly.
 */
#ifndef GP_CONV2D_WEIGHT_GRAD_H
#define GP_CONV2D_WEIGHT_GRAD_H

#include "conv2d.h"
#include "row.h"

typedef struct {
    int64_t stride[2], pad[4], dilation[2], groups; /* pad: top, left, bottom, right */
} gp_conv2d_weight_grad_attr;

enum { GP_GRAD_PLACES = 256 }; /* of patches laid out at once, at most */

/* Operands: x, dy; the output is dw. */
typedef struct {
    gp_sliding window;
    const gp_tensor *dy;
    int64_t rows, depth;     /* of one group's dw */
    int64_t height, columns; /* of a tile of it */
    int64_t down, across;    /* tiles */
    int64_t places;          /* laid out at once */
} gp_weight_grad;

GP_FUNCTION gp_weight_grad gp_weight_grad_plan(const gp_call *c)
{
    gp_weight_grad v = {.dy = &c->in[1]};
    const gp_conv2d_weight_grad_attr *a = c->attr;
    v.window =
        (gp_sliding){.x = &c->in[0], .stride = a->stride, .pad = a->pad, .dilation = a->dilation};
    v.rows = v.dy->dim[1] / a->groups;
    v.depth = gp_span(&c->out[0], 1, 4);
    v.height = gp_least(v.rows, GP_MC);
    v.down = gp_ceil_div(v.rows, v.height);
    /* about sixteen units, so that threads have enough to share */
    const int64_t wanted = gp_ceil_div(16, v.down * a->groups);
    v.columns = gp_least(gp_round_up(gp_ceil_div(v.depth, wanted), 16), GP_NC);
    v.columns = gp_least(v.columns, v.depth);
    v.across = gp_ceil_div(v.depth, v.columns);
    v.places = gp_least(v.dy->dim[2] * v.dy->dim[3], GP_GRAD_PLACES);
    return v;
}

GP_FUNCTION int64_t gp_weight_grad_work(const gp_weight_grad *v)
{
    return gp_round_up(v->columns * v->places, 16) + gp_gemm_work(v->height, v->columns, v->places);
}

/* Patches of places at .. at + n - 1: line k holds element k0 + k of each. */
GP_FUNCTION void gp_weight_grad_lay(const gp_weight_grad *v, const gp_tensor *dw,
                                    const gp_real *image, int64_t k0, int64_t count, int64_t at,
                                    int64_t n, gp_real *line)
{
    const int64_t kh = dw->dim[2], kw = dw->dim[3], width = v->dy->dim[3];
    for (int64_t k = 0; k < count; k++) {
        const int64_t kj = (k0 + k) % kw, ki = (k0 + k) / kw % kh, channel = (k0 + k) / kw / kh;
        const gp_real *plane = image + channel * v->window.x->stride[1];
        for (int64_t i = 0; i < n;) {
            const int64_t row = (at + i) / width, column = (at + i) % width;
            const int64_t some = gp_least(n - i, width - column);
            gp_conv_stretch(line + k * v->places + i, &v->window, plane, row, column, some, ki, kj);
            i += some;
        }
    }
}

/* One tile of dw: rows i0 .. of a group, columns k0 .. of its patches. */
GP_FUNCTION void gp_weight_grad_tile(const gp_call *c, const gp_weight_grad *v, int64_t unit,
                                     gp_real *work)
{
    const gp_tensor *x = &c->in[0], *dw = &c->out[0], *dy = v->dy;
    const int64_t k0 = unit % v->across * v->columns;
    const int64_t i0 = unit / v->across % v->down * v->height, group = unit / v->across / v->down;
    const int64_t m = gp_least(v->height, v->rows - i0), out = group * v->rows + i0;
    const int64_t n = gp_least(v->columns, v->depth - k0), places = dy->dim[2] * dy->dim[3];
    gp_real *own = work + gp_round_up(v->columns * v->places, 16);
    const gp_matrix to = {(gp_real *)dw->data + out * v->depth + k0, v->depth, 1};
    for (int64_t image = 0; image < x->dim[0]; image++) {
        const gp_real *from =
            (const gp_real *)x->data + image * x->stride[0] + group * dw->dim[1] * x->stride[1];
        gp_real *up = (gp_real *)dy->data + (image * dy->dim[1] + out) * places;
        for (int64_t at = 0; at < places; at += v->places) {
            const int64_t some = gp_least(v->places, places - at);
            gp_weight_grad_lay(v, dw, from, k0, n, at, some, work);
            gp_gemm_tile(to, (gp_matrix){up + at, places, 1}, (gp_matrix){work, 1, v->places}, m, n,
                         some, image > 0 || at > 0, own);
        }
    }
}

/* dw of one output channel that sees one input channel. */
GP_FUNCTION void gp_depthwise_weight_grad(const gp_call *c, const gp_weight_grad *v, int64_t out)
{
    const gp_conv2d_weight_grad_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *dy = v->dy;
    const int64_t kw = c->out[0].dim[3], width = dy->dim[3];
    for (int64_t k = 0; k < v->depth; k++) {
        double sum = 0;
        const int64_t first = k % kw * a->dilation[1] - a->pad[1];
        const gp_range in = gp_inside(0, width, a->stride[1], first, x->dim[3]);
        for (int64_t i = 0; i < x->dim[0] * dy->dim[2]; i++) {
            const int64_t n = i / dy->dim[2], row = i % dy->dim[2];
            const int64_t ih = row * a->stride[0] - a->pad[0] + k / kw * a->dilation[0];
            if (ih < 0 || ih >= x->dim[2])
                continue;
            const gp_real *from = (const gp_real *)x->data + n * x->stride[0] +
                                  out / v->rows * x->stride[1] + ih * x->stride[2] +
                                  first * x->stride[3];
            const gp_real *up =
                (const gp_real *)dy->data + ((n * dy->dim[1] + out) * dy->dim[2] + row) * width;
            const int64_t step = a->stride[1] * x->stride[3];
            gp_real lane[GP_ROW_LANES] = {0};
            for (int64_t j = in.from; j < in.to; j++)
                lane[j % GP_ROW_LANES] += up[j] * from[j * step];
            sum += (double)gp_row_lanes(lane);
        }
        ((gp_real *)c->out[0].data)[out * v->depth + k] = (gp_real)sum;
    }
}

GP_WORKSPACE(conv2d_weight_grad)
{
    const gp_weight_grad v = gp_weight_grad_plan(c);
    return (size_t)(gp_weight_grad_work(&v) * c->run->threads) * sizeof(gp_real);
}

GP_KERNEL(conv2d_weight_grad)
{
    const gp_conv2d_weight_grad_attr *a = c->attr;
    const gp_weight_grad v = gp_weight_grad_plan(c);
    const int64_t own = gp_weight_grad_work(&v), units = a->groups * v.down * v.across;
    if (c->out[0].dim[1] == 1) {
        GP_PARALLEL(c->run, gp_count(v.dy) > 8192)
        for (int64_t out = 0; out < v.dy->dim[1]; out++)
            gp_depthwise_weight_grad(c, &v, out);
        return GP_OK;
    }
    GP_PARALLEL(c->run, units > 1 && gp_count(v.dy) * v.depth > 32768)
    for (int64_t unit = 0; unit < units; unit++)
        gp_weight_grad_tile(c, &v, unit, (gp_real *)c->work + gp_thread() * own);
    return GP_OK;
}

#endif
