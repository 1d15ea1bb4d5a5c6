/* Convolutions of one channel to one (or a few) each: forward, transposed, by the weights. */
#include "runtime/c/depthwise.h"
#include "runtime/c/depthwise_grad.h"

#include "conv.h"

static gp_depthwise each(const gp_call *c)
{
    const Conv *v = c->attr;
    gp_depthwise d = {.call = c, .x = &c->in[0], .y = &c->out[0], .b = &c->in[2], .rows = 1};
    d.w = c->in[1].data;
    for (int i = 0; i < 2; i++) {
        d.kernel[i] = v->kernel[i];
        d.stride[i] = v->stride[i];
        d.pad[i] = v->pad[i];
        d.dilation[i] = v->dilation[i];
    }
    return d;
}

static int forward(const gp_call *c)
{
    const Conv *v = c->attr;
    gp_depthwise d = each(c);
    d.rows = v->o / v->groups;
    gp_depthwise_run(c->run, &d);
    return GP_OK;
}

static int by_input(const gp_call *c)
{
    const Conv *v = c->attr;
    gp_depthwise d = each(c);
    if (v->stride[0] * v->stride[1] > 1) {
        gp_depthwise_spread(c->run, &d);
        return GP_OK;
    }
    d.flipped = 1; /* the same convolution, with its window flipped */
    for (int i = 0; i < 2; i++)
        d.pad[i] = (v->kernel[i] - 1) * v->dilation[i] - v->pad[i];
    gp_depthwise_run(c->run, &d);
    return GP_OK;
}

static int by_weights(const gp_call *c)
{
    const Conv *v = c->attr;
    gp_depthwise d = each(c);
    d.y = &c->in[1];
    d.rows = v->o / v->groups;
    GP_PARALLEL(c->run, 1)
    for (int64_t out = 0; out < v->o; out++)
        gp_depthwise_weights(&d, out, c);
    return GP_OK;
}

static void note(const Conv *v)
{
    const int64_t high = conv_outputs(v, 0), wide = conv_outputs(v, 1);
    const int64_t rows = (high - 1) * v->stride[0] + (v->kernel[0] - 1) * v->dilation[0] + 1;
    const int64_t pitch = wide * v->stride[1] + (v->kernel[1] - 1) * v->dilation[1];
    CROSS_TOTAL(GP_BAND, rows * pitch);
    CROSS_TOTAL(GP_TAPS, v->kernel[0] * v->kernel[1]);
    CROSS(GP_DEPTHWISE_WIDTH, wide);
    CROSS(GP_SPREAD_PHASES, v->stride[1]);
    CROSS(GP_LANES, wide);
}

static void all(Conv v)
{
    Case t = {.attr = &v, .ins = 3, .outs = 1, .in_as = {v.x}, .out_as = {v.y}, .follows = 1};
    Operands p = conv_operands(&v, FORWARD);
    note(&v);
    t.kernel = forward;
    t.in[0] = p.x, t.in[1] = p.w, t.in[2] = p.b, t.want[0] = p.y;
    try(&t, "depthwise %s", conv_name(&v));
    if (v.o == v.c) {
        p = conv_operands(&v, BY_INPUT);
        t.kernel = by_input;
        t.in[0] = p.y, t.in[1] = p.w, t.in[2] = p.b, t.want[0] = p.x;
        try(&t, "depthwise by input %s", conv_name(&v));
    }
    v.bias = 0;
    p = conv_operands(&v, BY_WEIGHTS);
    t.kernel = by_weights;
    t.in[0] = p.x, t.in[1] = p.y, t.in[2] = (Array){0}, t.want[0] = p.w;
    t.out_as[0] = DENSE;
    t.follows = 0;
    t.aside = 1;
    try(&t, "depthwise by weights %s", conv_name(&v));
}

static Conv of(int64_t channels, int64_t each, int64_t high, int64_t wide, int64_t kernel,
               int64_t stride, int64_t pad)
{
    Conv v = conv_of(2, channels, high, wide, channels * each, kernel, pad);
    v.groups = channels;
    v.stride[0] = v.stride[1] = stride;
    v.bias = (int)(wide % 2);
    return v;
}

int main(void)
{
    NOT_HERE(GP_STREAM_LEAST);
    NOT_HERE(GP_STREAM_PIECE);
    const int64_t wide = GP_TINY ? 14 : 62, high = GP_BAND / (wide + 2) - 2;
    for (int64_t off = -1; off <= 1; off++) { /* bands of rows */
        all(of(2, 1, high + off + 2, wide + 2, 3, 1, 0));
        all(of(1, 2, 2 * high + off, wide, 3, 1, 1));
        all(of(1, 1, 2 * high + off, 2 * wide + off, 3, 2, 1));
    }
    for (int64_t off = -1; off <= 1; off++) /* widths, and widths of strides */
        for (int64_t stride = 1; stride <= 3; stride++) {
            Conv v = of(1, 1, 5, (GP_DEPTHWISE_WIDTH + off) * stride, 3, stride, 1);
            v.x = (Layout)(stride - 1);
            v.y = (Layout)(off + 1);
            all(v);
            v = of(1, 1, 4, GP_DEPTHWISE_WIDTH + off, 3, stride, 1);
            all(v);
        }
    for (int64_t stride = GP_SPREAD_PHASES - 1; stride <= GP_SPREAD_PHASES + 1; stride++)
        for (int64_t pad = 0; pad <= 2; pad++) {
            all(of(2, 1, 13, 17, 3, stride, pad));
            Conv v = of(2, 1, 13, 19, 4, stride, pad);
            v.stride[0] = 1 + pad;
            v.dilation[0] = 2;
            v.dilation[1] = 3;
            v.x = GAPS;
            all(v);
        }
    for (int64_t taps = GP_TAPS - 1; taps <= GP_TAPS + 1; taps++)
        for (int64_t stride = 1; stride <= 2; stride++) {
            Conv v = of(2, 1, 3, taps + 9, 1, stride, 0); /* a window of one row */
            v.kernel[1] = taps;
            all(v);
        }
    for (int64_t size = 1; size <= 2 * GP_LANES + 2; size++) /* ends of vectors */
        all(of(1, 1, 3, size + 2, 3, 1, 0));
    if (LAYERS) /* of MobileNet */
        for (int64_t stride = 1; stride <= 2; stride++)
            all(of(32, 1, 56, 56, 3, stride, 1));
    same_everywhere();
    for (int i = 0; i < (GP_TINY ? 100 : 60); i++) {
        Conv v = conv_any(1, draw(0, 2) ? 12 : 40);
        v.c = v.groups;
        v.o = v.groups * (draw(0, 2) ? 1 : 2);
        all(v);
    }
    return finish();
}
