/* Transposed convolution of images [N, C, H, W] with weights [C, O / groups, KH, KW].
 *
 * Input i adds to output i * stride + k * dilation - pad through tap k of the window. So outputs a
 * stride apart use the same taps, and are a convolution of their own with stride 1: a phase, with
 * its weights flipped. Where the window is no larger than the stride nothing is summed, and with
 * few channels a phase has too small a product: one product for all phases is faster then,
 * spread.h; the former not of 16 bits, which only convolutions multiply as such. Depthwise is in
 * depthwise.h. */
#ifndef GP_CONV_TRANSPOSE2D_H
#define GP_CONV_TRANSPOSE2D_H

#include "conv2d.h"
#include "spread.h"

enum { GP_PHASE_CHANNELS = GP_BLOCK(8, 3) }; /* the fewest channels for phases */

/* One axis of a phase: `count` taps first, first + step, ... of the window; the sliding window
 * reads them last to first. */
typedef struct {
    int64_t count, first, step;
    int64_t pad, dilation;
} gp_phase;

/* For outputs at, at + stride, ... */
GP_FUNCTION gp_phase gp_phase_of(int64_t at, int64_t kernel, int64_t stride, int64_t dilation,
                                 int64_t pad)
{
    int64_t common = stride, rest = dilation % stride; /* their greatest common divisor */
    while (rest > 0) {
        const int64_t next = common % rest;
        common = rest;
        rest = next;
    }
    gp_phase p = {.step = stride / common, .dilation = dilation / common};
    while (p.first < kernel && p.first < p.step && (at + pad - p.first * dilation) % stride != 0)
        p.first++;
    if (p.first == kernel || p.first == p.step)
        return p; /* no tap */
    p.count = gp_ceil_div(kernel - p.first, p.step);
    p.pad = (p.count - 1) * p.dilation - (at + pad - p.first * dilation) / stride;
    return p;
}

/* A phase as a convolution, and the values it points to. */
typedef struct {
    gp_phase axis[2];
    gp_tensor y;  /* its outputs */
    gp_call call; /* the call with them */
} gp_phases;

GP_FUNCTION void gp_phases_at(gp_phases *p, const gp_call *c, int64_t row, int64_t column)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    const int64_t at[2] = {row, column};
    p->call = *c;
    p->y = c->out[0];
    p->call.out = &p->y;
    for (int i = 0; i < 2; i++) {
        gp_tensor *y = &p->y;
        p->axis[i] =
            gp_phase_of(at[i], c->in[1].dim[2 + i], a->stride[i], a->dilation[i], a->pad[i]);
        if (y->data)
            y->data = (gp_real *)y->data + at[i] * y->stride[2 + i];
        y->dim[2 + i] =
            y->dim[2 + i] > at[i] ? gp_ceil_div(y->dim[2 + i] - at[i], a->stride[i]) : 0;
        y->stride[2 + i] *= a->stride[i];
    }
    if (a->stride[0] * a->stride[1] > 1) /* an epilogue's indices do not follow a phase */
        p->call.epilogue = NULL;
}

GP_FUNCTION gp_conv gp_phase_conv(const gp_phases *p)
{
    const gp_conv_transpose2d_attr *a = p->call.attr;
    const gp_tensor *w = &p->call.in[1];
    const int64_t window = w->dim[2] * w->dim[3], inputs = p->call.in[0].dim[1] / a->groups;
    const int64_t one[2] = {1, 1}, kernel[2] = {p->axis[0].count, p->axis[1].count};
    const int64_t pad[2] = {p->axis[0].pad, p->axis[1].pad};
    const int64_t dilation[2] = {p->axis[0].dilation, p->axis[1].dilation};
    int64_t last[2];
    for (int i = 0; i < 2; i++)
        last[i] = p->axis[i].first + (kernel[i] - 1) * p->axis[i].step;
    const gp_sliding in = gp_sliding_of(&p->call.in[0], &p->y, kernel, one, pad, dilation);
    gp_conv v = gp_conv_plan(&p->call, in, a->groups);
    v.w = (gp_weights){.at = w->data ? (const gp_real *)w->data + last[0] * w->dim[3] + last[1]
                                     : NULL,
                       .group = inputs * w->dim[1] * window,
                       .row = window,
                       .channel = w->dim[1] * window,
                       .place = {-p->axis[0].step * w->dim[3], -p->axis[1].step}};
    return v;
}

/* Whether it has outputs, and whether they read any input. */
GP_FUNCTION int gp_phase_is_there(const gp_phases *p)
{
    return p->y.dim[2] > 0 && p->y.dim[3] > 0;
}

GP_FUNCTION int gp_phase_sees(const gp_phases *p)
{
    return gp_phase_is_there(p) && p->axis[0].count > 0 && p->axis[1].count > 0;
}

/* Outputs that read no input: the bias. */
GP_FUNCTION void gp_phase_fill(const gp_phases *p)
{
    const gp_tensor *y = &p->y, *b = &p->call.in[2];
    const int64_t planes = y->dim[0] * y->dim[1];
    GP_PARALLEL(p->call.run, gp_count(y) > 32768)
    for (int64_t i = 0; i < planes; i++) {
        const int64_t n = i / y->dim[1], out = i % y->dim[1];
        gp_real *to = (gp_real *)y->data + n * y->stride[0] + out * y->stride[1];
        const gp_real bias = b->data ? ((const gp_real *)b->data)[out] : 0;
        for (int64_t h = 0; h < y->dim[2]; h++)
            for (int64_t j = 0; j < y->dim[3]; j++)
                to[h * y->stride[2] + j * y->stride[3]] = bias;
    }
}

/* Phases (i, j) and (i, j + 1) of the outputs, where both exist. They share cache lines, which the
 * second finds in cache. */
GP_FUNCTION void gp_phases_pair(const gp_call *c, int64_t i, int64_t j)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    const int count = j + 1 < a->stride[1] ? 2 : 1;
    gp_phases p[2];
    gp_conv v[2];
    int sees = 1;
    for (int k = 0; k < count; k++) {
        gp_phases_at(&p[k], c, i, j + k);
        sees = sees && gp_phase_sees(&p[k]);
        if (gp_phase_sees(&p[k]))
            v[k] = gp_phase_conv(&p[k]);
    }
    if (count == 2 && sees && gp_conv_alike(&v[0], &v[1])) {
        gp_conv_run(c->run, v, 2, c->work);
        return;
    }
    for (int k = 0; k < count; k++)
        if (gp_phase_sees(&p[k]))
            gp_conv_run(c->run, &v[k], 1, c->work);
        else if (gp_phase_is_there(&p[k]))
            gp_phase_fill(&p[k]);
}

GP_FUNCTION void gp_phases_run(const gp_call *c)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    const gp_tensor *y = &c->out[0];
    const int64_t phases = a->stride[0] * a->stride[1], planes = y->dim[0] * y->dim[1];
    for (int64_t i = 0; i < a->stride[0]; i++)
        for (int64_t j = 0; j < a->stride[1]; j += 2)
            gp_phases_pair(c, i, j);
    GP_PARALLEL(c->run, gp_count(y) > 32768)
    for (int64_t i = 0; i < (phases > 1 ? planes : 0); i++)
        gp_epilogue_plane(c, i / y->dim[1], i % y->dim[1]);
}

/* Which algorithm is used. */
GP_FUNCTION int gp_transpose_is_depthwise(const gp_call *c)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    return c->in[1].dim[1] == 1 && c->in[0].dim[1] == a->groups;
}

GP_FUNCTION int gp_transpose_spreads(const gp_call *c)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    const gp_tensor *w = &c->in[1];
    const int apart = !c->half && w->dim[2] <= a->stride[0] && w->dim[3] <= a->stride[1];
    return a->stride[0] * a->stride[1] > 1 && (apart || w->dim[1] < GP_PHASE_CHANNELS);
}

GP_FUNCTION int gp_conv_transpose2d_is_points(const gp_call *c)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    return gp_is_points(c, a->stride, a->groups);
}

GP_WORKSPACE(conv_transpose2d)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_conv_transpose2d_is_points(c)
                   ? (size_t)(gp_points_work(c) * c->run->threads) * sizeof(gp_real)
                   : gp_samples_space(c, 1, gp_conv_transpose2d_workspace);
    const gp_conv_transpose2d_attr *a = c->attr;
    int64_t own = 0;
    if (gp_transpose_is_depthwise(c))
        return 0;
    if (gp_transpose_spreads(c)) {
        const gp_spread s = gp_spread_plan(c);
        own = gp_spread_work(&s);
    } else {
        for (int64_t i = 0; i < a->stride[0] * a->stride[1]; i++) {
            gp_phases p;
            gp_phases_at(&p, c, i / a->stride[1], i % a->stride[1]);
            if (gp_phase_sees(&p)) {
                const gp_conv v = gp_phase_conv(&p);
                own = gp_conv_work(&v) > own ? gp_conv_work(&v) : own;
            }
        }
    }
    return (size_t)(own * c->run->threads) * sizeof(gp_real);
}

GP_FUNCTION int gp_transpose_phases(const gp_call *c)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    return (int)(a->stride[0] * a->stride[1]);
}

GP_FUNCTION gp_depthwise gp_transpose_each(const gp_call *c)
{
    const gp_conv_transpose2d_attr *a = c->attr;
    const gp_tensor *w = &c->in[1];
    gp_depthwise each = {.call = c, .x = &c->in[0], .y = &c->out[0], .b = &c->in[2], .w = w->data};
    const int spreads = gp_transpose_phases(c) > 1;
    each.rows = 1;
    each.flipped = !spreads;
    for (int i = 0; i < 2; i++) {
        each.kernel[i] = w->dim[2 + i];
        each.stride[i] = a->stride[i];
        each.dilation[i] = a->dilation[i];
        each.pad[i] = spreads ? a->pad[i] : (w->dim[2 + i] - 1) * a->dilation[i] - a->pad[i];
    }
    return each;
}

GP_WAYS(conv_transpose2d)
{
    gp_way(ways, "by_samples", gp_is_half(c));
    if (gp_is_half(c)) {
        if (!gp_conv_transpose2d_is_points(c))
            gp_samples_ways(c, 1, ways, gp_conv_transpose2d_ways);
        return;
    }
    const gp_conv_transpose2d_attr *a = c->attr;
    const int depthwise = gp_transpose_is_depthwise(c), spreads = gp_transpose_spreads(c);
    const gp_depthwise each = gp_transpose_each(c);
    const int64_t phases = gp_transpose_phases(c);
    gp_way(ways, "transpose_depthwise", depthwise);
    gp_depthwise_ways(depthwise && phases == 1 ? &each : NULL, ways);
    if (depthwise)
        gp_way(ways, "depthwise_spreads", phases > 1);
    else
        gp_way(ways, "transpose_spreads", spreads);
    for (int64_t i = 0; !depthwise && !spreads && i < phases; i++) {
        gp_phases p;
        gp_phases_at(&p, c, i / a->stride[1], i % a->stride[1]);
        if (gp_phase_sees(&p)) {
            const gp_conv v = gp_phase_conv(&p);
            gp_conv_ways(&v, ways);
        }
    }
}

GP_FUNCTION void gp_transpose_all(const gp_call *c)
{
    if (GP_WAY(transpose_spreads, gp_transpose_spreads(c))) {
        const gp_spread v = gp_spread_plan(c);
        gp_spread_run(&v, c->work);
    } else {
        gp_phases_run(c);
    }
}

GP_KERNEL(conv_transpose2d)
{
    if (GP_WAY(by_samples, gp_is_half(c)))
        return gp_conv_transpose2d_is_points(c) ? gp_points(c, 1, c->out[0].dim[1])
                                                : gp_by_samples(c, 1, gp_conv_transpose2d);
    if (GP_WAY(transpose_depthwise, gp_transpose_is_depthwise(c))) {
        const gp_depthwise each = gp_transpose_each(c);
        if (GP_WAY(depthwise_spreads, gp_transpose_phases(c) > 1))
            gp_depthwise_spread(c->run, &each);
        else
            gp_depthwise_run(c->run, &each);
    } else {
        gp_transpose_all(c);
    }
    return GP_OK;
}

#endif
