/* Convolutions: what their rows have in common. */
#ifndef GPLAN_OPS_CONV_H
#define GPLAN_OPS_CONV_H

#include "frontend/ops/window.h"

/* ---- What all of them check ----------------------------------------------------------------- */

/* The bias, where there is one: a number for each output channel. */
static inline bool check_bias(Graph *g, const Call *c, int64_t channels)
{
    if (!call_has(c, 2))
        return true;
    View b = call_view(g, c, 2);
    if (b.rank != 1 || b.dim[0] != channels)
        return call_error_at(g, c, 2, "b must be [%lld], one for each output channel, not %s",
                             (long long)channels, dims_text(g, c, 2));
    return want_f32(g, c, 2);
}

static inline bool check_groups(Graph *g, const Call *c, int64_t channels, const char *which)
{
    int64_t groups = call_int(c, "groups");
    if (groups < 1 || channels % groups != 0)
        return call_error(g, c, "groups = %lld does not divide the %lld %s channels",
                          (long long)groups, (long long)channels, which);
    return true;
}

/* Weights whose axis 1 is the input channels of a group. */
static inline bool check_weights(Graph *g, const Call *c)
{
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    int64_t groups = call_int(c, "groups");
    if (!check_groups(g, c, x.dim[1], "input") || !check_groups(g, c, w.dim[0], "output"))
        return false;
    if (w.dim[1] != x.dim[1] / groups)
        return call_error_at(g, c, 1, "w %s expects %lld input channels%s, but x %s has %lld%s",
                             dims_text(g, c, 1), (long long)w.dim[1],
                             groups > 1 ? " in each group" : "", dims_text(g, c, 0),
                             (long long)(x.dim[1] / groups), groups > 1 ? " in each" : "");
    return check_bias(g, c, w.dim[0]);
}

static inline bool too_small(Graph *g, const Call *c)
{
    return call_error_at(g, c, 0, "the kernel of w %s is larger than x %s with its padding",
                         dims_text(g, c, 1), dims_text(g, c, 0));
}

/* The settings of the layer form: how many channels, and the kernel for each axis. */
static inline bool layer_settings(Graph *g, Call *c, int axes)
{
    int64_t channels = call_int(c, "channels");
    View x = call_view(g, c, 0);
    if (x.rank != axes + 2)
        return call_error_at(g, c, 0, "x must be %s, not %s",
                             axes == 1   ? "[N, C, L]"
                             : axes == 2 ? "[N, C, H, W]"
                                         : "[N, C, D, H, W]",
                             use_text(g, call_operand(c, 0)));
    if (!call_attr(c, "channels")->given || !call_attr(c, "kernel")->given)
        return call_error(g, c,
                          "needs channels and kernel, as in %s(x, 32, kernel = 3), "
                          "or a weight",
                          c->op->name);
    if (channels < 1)
        return call_error(g, c, "channels must be positive");
    return window_setting(g, c, "kernel", axes, 1) && check_groups(g, c, x.dim[1], "input") &&
           check_groups(g, c, channels, "output");
}

static inline bool layer_bias(Graph *g, Call *c)
{
    int64_t channels = call_int(c, "channels");
    if (!call_int(c, "bias") || call_has(c, 2))
        return true;
    return call_param(g, c, "b", init_const(0), 1, &channels);
}

/* w [channels, C / groups, kernel...]. */
static inline bool conv_params(Graph *g, Call *c, int axes)
{
    if (call_has(c, 1))
        return true;
    if (!layer_settings(g, c, axes))
        return false;
    const Attr *kernel = call_attr(c, "kernel");
    int64_t dim[5] = {call_int(c, "channels"), call_view(g, c, 0).dim[1] / call_int(c, "groups")};
    double fan_in = (double)dim[1];
    for (int i = 0; i < axes; i++) {
        dim[2 + i] = kernel->list[i];
        fan_in *= (double)dim[2 + i];
    }
    Init init = init_he(fan_in < 9e18 ? (int64_t)fan_in : INT64_MAX);
    return call_param(g, c, "w", init, axes + 2, dim) && layer_bias(g, c);
}

/* w [C, channels / groups, kernel...]. */
static inline bool transpose_params(Graph *g, Call *c, int axes)
{
    if (call_has(c, 1))
        return true;
    if (!layer_settings(g, c, axes))
        return false;
    int64_t inputs = call_view(g, c, 0).dim[1], groups = call_int(c, "groups");
    int64_t dim[5] = {inputs, call_int(c, "channels") / groups};
    for (int i = 0; i < axes; i++)
        dim[2 + i] = call_attr(c, "kernel")->list[i];
    return call_param(g, c, "w", init_he(inputs / groups), axes + 2, dim) && layer_bias(g, c);
}

/* Operands, settings and padding of a transposed convolution; dims of the result into dim. */
static inline bool transpose_window(Graph *g, Call *c, WindowAxis *axis, int axes, int64_t *dim)
{
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    int64_t groups = call_int(c, "groups");
    if (!check_groups(g, c, x.dim[1], "input"))
        return false;
    if (w.dim[0] != x.dim[1])
        return call_error_at(g, c, 1, "w %s expects %lld input channels, but x %s has %lld",
                             dims_text(g, c, 1), (long long)w.dim[0], dims_text(g, c, 0),
                             (long long)x.dim[1]);
    dim[0] = x.dim[0];
    dim[1] = w.dim[1] * groups;
    if (!check_bias(g, c, dim[1]) || !window_pad(g, c, axis, axes, x.dim + 2))
        return false;
    for (int i = 0; i < axes; i++) {
        int64_t stride = axis[i].stride = call_attr(c, "stride")->list[i];
        int64_t dilation = axis[i].dilation = call_attr(c, "dilation")->list[i];
        int64_t extra = call_attr(c, "output_pad")->list[i];
        axis[i].kernel = w.dim[2 + i];
        if (extra > 0 && extra >= stride && extra >= dilation)
            return call_error(g, c, "output_pad = %lld must be less than stride or dilation",
                              (long long)extra);
        if (x.dim[2 + i] > INT64_MAX / 4 / stride)
            return call_error(g, c, "stride = %lld makes the output too large", (long long)stride);
        dim[2 + i] = (x.dim[2 + i] - 1) * stride - axis[i].begin - axis[i].end +
                     dilation * (w.dim[2 + i] - 1) + extra + 1;
        if (dim[2 + i] < 1)
            return call_error(g, c, "pad leaves the output empty");
    }
    return true;
}

/* ---- Arguments ------------------------------------------------------------------------------ */

/* clang-format off */
#define LAYER(shape, axes)                                                                  \
    {.name = "x"}, {.name = "w", .flags = ARG_PARAM, .help = shape, .foreign = "weight"},   \
    {.name = "b", .flags = ARG_PARAM | ARG_OPTIONAL, .help = "[channels]",                  \
     .foreign = "bias"},                                                                    \
    {.name = "channels", .kind = ARG_INT, .flags = ARG_FRONT, .fallback = "none",           \
     .help = "of the result, where there is no w"},                                         \
    {.name = "kernel", .kind = ARG_INTS, .count = axes, .flags = ARG_FRONT,                 \
     .fallback = "none", .help = "size of the window, where there is no w"}
#define GROUPS {.name = "groups", .kind = ARG_INT, .fallback = "1"}
#define BIAS {.name = "bias", .kind = ARG_BOOL, .flags = ARG_FRONT, .fallback = "true"}
#define INTS(label, number, text) \
    {.name = label, .kind = ARG_INTS, .count = number, .fallback = text}
#define PAD(number) \
    {.name = "pad", .kind = ARG_INTS, .count = number, .fallback = "0", .words = "same valid", \
     .help = "one number, one for each axis, or begins and ends"}
#define CUT(number)                                                                            \
    {.name = "pad", .kind = ARG_INTS, .count = number, .fallback = "0",                       \
     .help = "taken away from the result"}
#define OUTPUT_PAD(number)                                                                     \
    {.name = "output_pad", .kind = ARG_INTS, .count = number, .flags = ARG_FRONT,             \
     .fallback = "0", .help = "added at its end"}
/* clang-format on */

#endif
