/* Transposed convolution as a product and a scatter (col2im): for a few output channels at a time,
 * weights' [O * KH * KW, C] times the image [C, H * W] gives what each input position adds to its
 * window of outputs; tiles of whole input rows are multiplied and added one after the other, always
 * in the same order. */
#ifndef GP_SPREAD_H
#define GP_SPREAD_H

#include "epilogue.h"
#include "gemm.h"
#include "settings.h"
#include "window.h"

typedef struct {
    const gp_call *call;
    const gp_tensor *x, *w, *b, *y;
    const gp_conv_transpose2d_attr *a;
    int64_t inputs, outputs; /* channels of a group */
    int64_t places;          /* KH * KW */
    int64_t channels;        /* output channels of one task */
    int64_t rows, width;     /* of a tile of the image */
} gp_spread;

enum { /* of a tile, at most */
       GP_SPREAD_ROWS = GP_BLOCK(96, 12),
       GP_SPREAD_COLUMNS = GP_BLOCK(256, 20)
};

GP_FUNCTION gp_spread gp_spread_plan(const gp_call *c)
{
    gp_spread v = {
        .call = c, .x = &c->in[0], .w = &c->in[1], .b = &c->in[2], .y = &c->out[0], .a = c->attr};
    v.inputs = v.x->dim[1] / v.a->groups;
    v.outputs = v.w->dim[1];
    v.places = v.w->dim[2] * v.w->dim[3];
    v.channels = v.places < GP_SPREAD_ROWS ? gp_least(GP_SPREAD_ROWS / v.places, v.outputs) : 1;
    v.width = gp_least(v.x->dim[3], GP_SPREAD_COLUMNS);
    v.rows = gp_least(GP_SPREAD_COLUMNS / v.width, v.x->dim[2]);
    return v;
}

GP_FUNCTION int64_t gp_spread_work(const gp_spread *v)
{
    const int64_t m = v->channels * v->places, n = v->rows * v->width;
    return gp_round_up(m * n, 16) + gp_gemm_work(n, v->inputs);
}

/* Adds what input row ih, columns iw .. iw + count - 1 contributes through tap p of the window. */
GP_FUNCTION void gp_spread_row(const gp_spread *v, gp_real *plane, const gp_real *restrict from,
                               int64_t p, int64_t ih, int64_t iw, int64_t count)
{
    const int64_t kw = v->w->dim[3], step = v->a->stride[1];
    const int64_t oh = ih * v->a->stride[0] + p / kw * v->a->dilation[0] - v->a->pad[0];
    const int64_t first = p % kw * v->a->dilation[1] - v->a->pad[1];
    if (oh < 0 || oh >= v->y->dim[2])
        return;
    const gp_range in = gp_inside(iw, iw + count, step, first, v->y->dim[3]);
    gp_real *restrict to = plane + oh * v->y->stride[2] + first * v->y->stride[3];
    const int64_t stride = step * v->y->stride[3];
    for (int64_t i = in.from; i < in.to; i++)
        to[i * stride] += from[i - iw];
}

/* The tile of `rows` input rows from ih, `width` columns from iw. */
GP_FUNCTION void gp_spread_tile(const gp_spread *v, gp_matrix w, gp_matrix x, int64_t m, gp_real *y,
                                int64_t ih, int64_t iw, int64_t rows, int64_t width, gp_real *work)
{
    const int64_t n = rows * width;
    gp_real *own = work + gp_round_up(v->channels * v->places * v->rows * v->width, 16);
    x.at += ih * v->x->stride[2] + iw * v->x->stride[3];
    if (rows == 1 || v->x->stride[2] == width * v->x->stride[3])
        gp_gemm((gp_matrix){work, n, 1}, w, x, m, n, v->inputs, 0, own, (gp_ending){0});
    else
        for (int64_t i = 0; i < rows; i++, x.at += v->x->stride[2])
            gp_gemm((gp_matrix){work + i * width, n, 1}, w, x, m, width, v->inputs, 0, own,
                    (gp_ending){0});
    for (int64_t p = 0; p < m; p++)
        for (int64_t i = 0; i < rows; i++)
            gp_spread_row(v, y + p / v->places * v->y->stride[1], work + p * n + i * width,
                          p % v->places, ih + i, iw, width);
}

GP_FUNCTION void gp_spread_unit(const gp_spread *v, int64_t unit, gp_real *work)
{
    const gp_tensor *x = v->x, *y = v->y;
    const int64_t parts = gp_ceil_div(v->outputs, v->channels);
    const int64_t first = unit % parts * v->channels, group = unit / parts % v->a->groups;
    const int64_t n = unit / parts / v->a->groups, out = group * v->outputs + first;
    const int64_t channels = gp_least(v->channels, v->outputs - first);
    gp_real *to = (gp_real *)y->data + n * y->stride[0] + out * y->stride[1];
    for (int64_t i = 0; i < channels; i++)
        for (int64_t h = 0; h < y->dim[2]; h++)
            for (int64_t j = 0; j < y->dim[3]; j++)
                to[i * y->stride[1] + h * y->stride[2] + j * y->stride[3]] =
                    v->b->data ? ((const gp_real *)v->b->data)[out + i] : 0;

    const int64_t weights = v->outputs * v->places; /* of one input channel */
    const gp_matrix w = {(gp_real *)v->w->data + group * v->inputs * weights + first * v->places, 1,
                         weights};
    const gp_matrix from = {(gp_real *)x->data + n * x->stride[0] +
                                group * v->inputs * x->stride[1],
                            x->stride[1], x->stride[3]};
    for (int64_t ih = 0; ih < x->dim[2]; ih += v->rows)
        for (int64_t iw = 0; iw < x->dim[3]; iw += v->width)
            gp_spread_tile(v, w, from, channels * v->places, to, ih, iw,
                           gp_least(v->rows, x->dim[2] - ih), gp_least(v->width, x->dim[3] - iw),
                           work);
    for (int64_t i = 0; i < channels; i++)
        gp_epilogue_plane(v->call, n, out + i);
}

GP_FUNCTION void gp_spread_run(const gp_spread *v, gp_real *work)
{
    const int64_t own = gp_spread_work(v);
    const int64_t units = v->x->dim[0] * v->a->groups * gp_ceil_div(v->outputs, v->channels);
    GP_PARALLEL(v->call->run, units > 1 && gp_count(v->x) * v->outputs * v->places > 32768)
    for (int64_t unit = 0; unit < units; unit++)
        gp_spread_unit(v, unit, work + gp_thread() * own);
}

#endif
