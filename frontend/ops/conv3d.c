/* Convolutions of volumes [N, C, D, H, W], by convolutions of images. conv3d puts the slices that
 * an output sees side by side as channels, so that one conv2d does all the sums: it costs a copy of
 * x for each slice of the kernel. conv_transpose3d makes the slices of all taps by one
 * conv_transpose2d and adds up those that fall on the same depth. */
#include "frontend/ops/conv.h"

static bool conv3d_params(Graph *g, Call *c)
{
    return conv_params(g, c, 3);
}

static bool conv_transpose3d_params(Graph *g, Call *c)
{
    return transpose_params(g, c, 3);
}

enum { MAX_SLICES = 256 }; /* of a kernel: each is an operand or an op */

static bool check_slices(Graph *g, const Call *c)
{
    View w = call_view(g, c, 1);
    return w.dim[2] <= MAX_SLICES ||
           call_error_at(g, c, 1, "w %s has a kernel of more than %d slices", dims_text(g, c, 1),
                         MAX_SLICES);
}

/* [A, B, D, H, W] as [A, D, B, H, W], and back. */
static Use exchange(Graph *g, Use use)
{
    return use_permute(g, use, (int[]){0, 2, 1, 3, 4});
}

static Use pad_axis(Graph *g, const Call *from, Use use, int axis, int64_t before, int64_t after)
{
    if (use.value == NONE || (before == 0 && after == 0))
        return use;
    int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
    int rank = use_view(g, use).rank;
    low[axis] = before;
    high[axis] = after;
    Call pad = call_begin(g, from, "pad");
    call_set_list(&pad, "before", rank, low);
    call_set_list(&pad, "after", rank, high);
    call_use(g, &pad, use);
    return call_finish(g, &pad) ? pad.result.at[0] : (Use){NONE, NONE};
}

/* Every step-th of an axis from `start` on. */
static Use every(Graph *g, Use use, int axis, int64_t start, int64_t step, int64_t count)
{
    View view = use_view(g, use);
    view.offset += start * view.stride[axis];
    view.stride[axis] *= step;
    view.dim[axis] = count;
    return use_make(g, use.value, view);
}

/* The settings of the axes H and W. */
static void set_plane(Call *to, const WindowAxis *axis, const Call *from)
{
    call_set_list(to, "stride", 2, (int64_t[]){axis[1].stride, axis[2].stride});
    call_set_list(to, "dilation", 2, (int64_t[]){axis[1].dilation, axis[2].dilation});
    call_set_list(to, "pad", 4,
                  (int64_t[]){axis[1].begin, axis[2].begin, axis[1].end, axis[2].end});
    call_set(to, "groups", (double)call_int(from, "groups"));
}

/* ---- conv3d --------------------------------------------------------------------------------- */

/* [N * outputs, C * KD, H, W]: for each output depth, the slices it sees of each channel. */
static Use depth_patches(Graph *g, const Call *c, const WindowAxis *depth, int64_t outputs)
{
    Use x = pad_axis(g, c, call_operand(c, 0), 2, depth->begin, depth->end);
    if (x.value == NONE)
        return x;
    Call stack = call_begin(g, c, "stack");
    call_set(&stack, "axis", 3);
    for (int64_t k = 0; k < depth->kernel; k++)
        call_use(g, &stack,
                 exchange(g, every(g, x, 2, k * depth->dilation, depth->stride, outputs)));
    if (!call_finish(g, &stack))
        return (Use){NONE, NONE};
    View v = use_view(g, stack.result.at[0]); /* [N, outputs, C, KD, H, W] */
    int64_t dim[4] = {v.dim[0] * v.dim[1], v.dim[2] * v.dim[3], v.dim[4], v.dim[5]};
    return use_reshape(g, c, stack.result.at[0], 4, dim);
}

static bool conv3d_build(Graph *g, Call *c)
{
    if (!window_operand(g, c, 0, 5, "[N, C, D, H, W]") ||
        !window_operand(g, c, 1, 5, "[channels, C / groups, KD, KH, KW]") || !check_weights(g, c) ||
        !check_slices(g, c) || !window_setting(g, c, "stride", 3, 1) ||
        !window_setting(g, c, "dilation", 3, 1))
        return false;
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    WindowAxis axis[3];
    for (int i = 0; i < 3; i++)
        axis[i] = (WindowAxis){.kernel = w.dim[2 + i],
                               .stride = call_attr(c, "stride")->list[i],
                               .dilation = call_attr(c, "dilation")->list[i]};
    if (!window_pad(g, c, axis, 3, x.dim + 2))
        return false;
    for (int i = 0; i < 3; i++)
        if (window_count(&axis[i], x.dim[2 + i], false) == 0)
            return too_small(g, c);
    int64_t depth = window_count(&axis[0], x.dim[2], false);

    Call conv = call_begin(g, c, "conv2d");
    call_use(g, &conv, depth_patches(g, c, &axis[0], depth));
    call_use(g, &conv,
             use_reshape(g, c, call_operand(c, 1), 4,
                         (int64_t[]){w.dim[0], w.dim[1] * w.dim[2], w.dim[3], w.dim[4]}));
    call_use(g, &conv, call_operand(c, 2));
    if (call_operand(&conv, 0).value == NONE || call_operand(&conv, 1).value == NONE)
        return false;
    set_plane(&conv, axis, c);
    call_set(&conv, "bias", 0);
    if (!call_finish(g, &conv))
        return false;
    View y = use_view(g, conv.result.at[0]);
    Use volume = use_reshape(g, c, conv.result.at[0], 5,
                             (int64_t[]){x.dim[0], depth, y.dim[1], y.dim[2], y.dim[3]});
    call_result(g, c, exchange(g, volume));
    return true;
}

/* ---- conv_transpose3d ----------------------------------------------------------------------- */

/* Taps first .. last - 1 of `taps` [N, D, O, KD, H, W], laid out in depth: tap k of input d is
 * at d * stride + k * dilation of `depth` places. They follow each other between two steps of the
 * stride, so nothing overlaps. */
static Use spread_taps(Graph *g, const Call *c, Use taps, const WindowAxis *axis, int64_t first,
                       int64_t last, int64_t depth)
{
    int64_t begin = first * axis->dilation % axis->stride;
    int64_t shift = first * axis->dilation - begin;
    Use some = use_permute(g, use_window(g, taps, 3, first, last - first),
                           (int[]){0, 2, 1, 3, 4, 5}); /* [N, O, D, taps, H, W] */
    some = pad_axis(g, c, some, 3, begin, axis->stride - begin - (last - first));
    if (some.value == NONE)
        return some;
    View v = use_view(g, some);
    int64_t dim[5] = {v.dim[0], v.dim[1], v.dim[2] * v.dim[3], v.dim[4], v.dim[5]};
    some = use_reshape(g, c, some, 5, dim);
    return pad_axis(g, c, some, 2, shift, depth - shift - dim[2]);
}

/* The sum of the taps of each input depth: [N, O, D', H, W]. */
static Use fold_depth(Graph *g, const Call *c, Use taps, const WindowAxis *axis, int64_t outputs)
{
    View v = use_view(g, taps);
    int64_t kernel = v.dim[3], step = axis->stride;
    int64_t depth = v.dim[1] * step + (kernel - 1) * axis->dilation / step * step;
    Use sum = {NONE, NONE};
    if (depth < axis->begin + outputs)
        depth = axis->begin + outputs;
    for (int64_t first = 0, last; first < kernel; first = last) {
        last = first + 1;
        while (axis->dilation == 1 && last < kernel && last % step != 0)
            last++;
        Use some = spread_taps(g, c, taps, axis, first, last, depth);
        if (some.value == NONE)
            return some;
        sum = first == 0 ? some : call_op(g, c, "add", 2, (Use[]){sum, some});
    }
    return use_window(g, sum, 2, axis->begin, outputs);
}

static bool conv_transpose3d_build(Graph *g, Call *c)
{
    WindowAxis axis[3] = {{0}};
    int64_t dim[5];
    if (!window_operand(g, c, 0, 5, "[N, C, D, H, W]") ||
        !window_operand(g, c, 1, 5, "[C, channels / groups, KD, KH, KW]") || !check_slices(g, c) ||
        !window_setting(g, c, "stride", 3, 1) || !window_setting(g, c, "dilation", 3, 1) ||
        !window_setting(g, c, "output_pad", 3, 0) || !transpose_window(g, c, axis, 3, dim))
        return false;
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    Call conv = call_begin(g, c, "conv_transpose2d");
    call_use(g, &conv, window_slices(g, c, exchange(g, call_operand(c, 0))));
    call_use(g, &conv,
             use_reshape(g, c, call_operand(c, 1), 4,
                         (int64_t[]){w.dim[0], w.dim[1] * w.dim[2], w.dim[3], w.dim[4]}));
    if (call_operand(&conv, 0).value == NONE || call_operand(&conv, 1).value == NONE)
        return false;
    call_use(g, &conv, (Use){NONE, NONE});
    set_plane(&conv, axis, c);
    call_set_list(&conv, "output_pad", 2, call_attr(c, "output_pad")->list + 1);
    call_set(&conv, "bias", 0);
    if (!call_finish(g, &conv))
        return false;
    Use taps = use_reshape(g, c, conv.result.at[0], 6,
                           (int64_t[]){x.dim[0], x.dim[2], dim[1], w.dim[2], dim[3], dim[4]});
    Use y = fold_depth(g, c, taps, &axis[0], dim[2]);
    if (y.value != NONE && call_has(c, 2))
        y = call_op(g, c, "add", 2, (Use[]){y, use_along(g, call_operand(c, 2), 1, 5)});
    call_result(g, c, y);
    return y.value != NONE;
}

const OpRow ops_conv3d[] = {
    {.name = "conv3d",
     .args = {LAYER("[channels, C / groups, KD, KH, KW]", 3), INTS("stride", 3, "1"), PAD(6),
              INTS("dilation", 3, "1"), GROUPS, BIAS},
     .params = conv3d_params,
     .build = conv3d_build,
     .help = "[N, C, D, H, W] -> [N, channels, (D + pads - KD) / stride + 1, ...]. Takes a copy of "
             "x for each of the KD slices of the kernel"},
    {.name = "conv_transpose3d",
     .args = {LAYER("[C, channels / groups, KD, KH, KW]", 3), INTS("stride", 3, "1"), CUT(6),
              OUTPUT_PAD(3), INTS("dilation", 3, "1"), GROUPS, BIAS},
     .params = conv_transpose3d_params,
     .build = conv_transpose3d_build,
     .help = "[N, C, D, H, W] -> [N, channels, (D - 1) * stride + KD - pads + output_pad, ...]"},
    {0},
};
