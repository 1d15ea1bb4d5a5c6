/* Transposed convolution of images [N, C, H, W] with weights [C, O / groups, KH, KW].
 *
 * Output o of an axis sums x[i] * w[k] over i * stride + k * dilation = o + pad. Outputs that are
 * `stride` apart use the same taps: each such phase is a convolution whose window runs backwards
 * over every (or every second, ...) input, so nothing is multiplied by zeros in between. */
#ifndef GP_CONV_TRANSPOSE2D_CUH
#define GP_CONV_TRANSPOSE2D_CUH

#include "conv2d.cuh"

GP_UNUSED static int64_t gp_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Outputs phase, phase + stride, ... of an axis. */
GP_UNUSED static gp_slide gp_phase(int64_t phase, int64_t outputs, int64_t kernel, int64_t stride,
                                   int64_t pad, int64_t dilation)
{
    gp_slide s = {};
    const int64_t apart = stride / gp_common_divisor(stride, dilation);
    int64_t k = 0;
    while (k < kernel && (phase + pad - k * dilation) % stride != 0)
        k++;
    s.outputs = gp_ceil_div(outputs - phase, stride);
    s.taps = k < kernel ? gp_ceil_div(kernel - k, apart) : 0;
    s.step = 1;
    s.first = s.taps ? (phase + pad - k * dilation) / stride : 0;
    s.tap = -apart * dilation / stride;
    s.at = phase;
    s.apart = stride;
    s.weight = s.taps ? k : 0;
    s.weight_step = apart;
    return s;
}

GP_KERNEL(conv_transpose2d)
{
    const gp_conv_transpose2d_attr *a = (const gp_conv_transpose2d_attr *)c->attr;
    const gp_tensor *w = &c->in[1];
    const int64_t parts = gp_conv_transpose2d_parts(c);
    gp_conv v = gp_conv_of(c, a->groups);
    v.w.row = w->dim[2] * w->dim[3];
    v.w.channel = v.outputs * v.w.row;
    v.w.group = v.inputs * v.w.channel;
    for (int64_t i = 0; i < a->stride[0] * a->stride[1]; i++) {
        const int64_t phase[2] = {i / a->stride[1], i % a->stride[1]};
        if (phase[0] >= v.y.dim[2] || phase[1] >= v.y.dim[3])
            continue;
        for (int d = 0; d < 2; d++)
            v.slide[d] = gp_phase(phase[d], v.y.dim[2 + d], w->dim[2 + d], a->stride[d], a->pad[d],
                                  a->dilation[d]);
        const int status = gp_conv_run(c, &v, parts);
        if (status != GP_OK)
            return status;
    }
    return gp_conv_join(c, &v, parts);
}

GP_TAKES_HALF(conv_transpose2d)

#endif
