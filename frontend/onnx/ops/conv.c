/* Convolutions, and the windows that they share with pools. */
#include "frontend/onnx/ops/window.h"

#include <string.h>

/* ---- Windows -------------------------------------------------------------------------------- */

static bool read_list(Import *m, const char *name, size_t wanted_count, int64_t *number)
{
    size_t count;
    const int64_t *ints = attr_ints(m, name, &count);
    if (ints && count != wanted_count)
        return refuse(m, "%s has %zu numbers, not %zu", name, count, wanted_count);
    if (ints)
        memcpy(number, ints, count * sizeof *ints);
    return true;
}

/* As many outputs as a stride leaves, whatever the window: what that asks of the margin. */
static bool pad_same(Import *m, const Tensor *x, Window *w, bool lower)
{
    for (int i = 0; i < w->axes; i++) {
        int64_t size = x->dim[x->rank - w->axes + i],
                span = (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (x->open[x->rank - w->axes + i] && w->stride[i] != 1)
            return refuse(m, "auto_pad with a stride along a free dimension");
        int64_t out = (size + w->stride[i] - 1) / w->stride[i];
        int64_t all = (out - 1) * w->stride[i] + span - size;
        all = all < 0 ? 0 : all;
        w->pad[i] = lower ? all - all / 2 : all / 2;
        w->pad[w->axes + i] = all - w->pad[i];
    }
    return true;
}

bool read_window(Import *m, const Tensor *x, Window *w)
{
    for (int i = 0; i < w->axes; i++)
        w->stride[i] = w->dilation[i] = 1;
    if (!read_list(m, "strides", (size_t)w->axes, w->stride) ||
        !read_list(m, "dilations", (size_t)w->axes, w->dilation) ||
        !read_list(m, "pads", 2 * (size_t)w->axes, w->pad))
        return false;
    for (int i = 0; i < w->axes; i++) {
        const int64_t most = 1 << 20;
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] > most ||
            w->stride[i] > most || w->dilation[i] > most)
            return refuse(m, "a size of its window is not positive, or is absurd");
    }
    const char *how = attr_word(m, "auto_pad", "NOTSET");
    bool lower = strcmp(how, "SAME_LOWER") == 0;
    if (lower || strcmp(how, "SAME_UPPER") == 0)
        return pad_same(m, x, w, lower);
    if (strcmp(how, "VALID") == 0)
        memset(w->pad, 0, sizeof w->pad);
    else if (strcmp(how, "NOTSET") != 0 && *how)
        return refuse(m, "auto_pad is %s", how);
    return true;
}

const Expr *window_ints(Import *m, const Window *w, const int64_t *number, int64_t fallback)
{
    int64_t both[2] = {fallback, number[0]};
    return w->axes == 1 ? ints(m, 2, both) : ints(m, (size_t)w->axes, number);
}

const Expr *window_pads(Import *m, const Window *w)
{
    int64_t both[4] = {0, w->pad[0], 0, w->pad[1]};
    bool none = true;
    for (int i = 0; i < 2 * w->axes; i++)
        none &= w->pad[i] == 0;
    if (none)
        return NULL;
    return w->axes == 1 ? ints(m, 4, both) : ints(m, 2 * (size_t)w->axes, w->pad);
}

/* ---- Convolutions --------------------------------------------------------------------------- */

static bool all_ones(const int64_t *number, int count)
{
    for (int i = 0; i < count; i++)
        if (number[i] != 1)
            return false;
    return true;
}

static bool take_operands(Import *m, Window *window)
{
    const Tensor *x = given(m, 0), *w = given(m, 1);
    size_t count;
    if (!x || !w)
        return refuse(m, "it needs a tensor and a weight");
    window->axes = x->rank - 2;
    if (window->axes < 1 || window->axes > MAX_AXES || w->rank != x->rank)
        return refuse(m, "on %d dimensions, with a weight of %d", x->rank, w->rank);
    for (int i = 0; i < window->axes; i++)
        window->kernel[i] = w->dim[2 + i];
    const int64_t *kernel = attr_ints(m, "kernel_shape", &count);
    for (size_t i = 0; kernel && i < count && i < (size_t)window->axes; i++)
        if (kernel[i] != window->kernel[i])
            return refuse(m, "kernel_shape is not that of the weight");
    return read_window(m, x, window);
}

static bool conv(Import *m)
{
    static const char *const names[] = {"", "conv1d", "conv2d", "conv3d"};
    Window w = {0};
    if (!take_operands(m, &w))
        return false;
    int64_t groups = attr_int(m, "group", 1);
    size_t axes = (size_t)w.axes;
    const Expr *bias = weight(m, 2, "bias"), *pads = window_pads(m, &w);
    if (pads && axes == 1)
        pads = ints(m, 2, w.pad);
    return result(
        m, 0,
        CALL(m, names[axes], {use(m, 0)}, {weight(m, 1, "weight"), "w"}, {bias, "b"},
             {bias ? NULL : boolean(m, false), "bias"},
             {all_ones(w.stride, w.axes) ? NULL : ints(m, axes, w.stride), "stride"}, {pads, "pad"},
             {all_ones(w.dilation, w.axes) ? NULL : ints(m, axes, w.dilation), "dilation"},
             {groups == 1 ? NULL : integer(m, groups), "groups"}));
}

/* The margins that make the result as large as asked for. */
static bool pad_to(Import *m, const Tensor *x, Window *w, const int64_t *extra)
{
    size_t count;
    const int64_t *shape = attr_ints(m, "output_shape", &count);
    const char *how = attr_word(m, "auto_pad", "NOTSET");
    bool upper = strcmp(how, "SAME_UPPER") == 0, same = upper || strcmp(how, "SAME_LOWER") == 0;
    if (!shape && !same)
        return true;
    if (shape && count < (size_t)w->axes)
        return refuse(m, "output_shape is too short");
    for (int i = 0; i < w->axes; i++) {
        int axis = x->rank - w->axes + i;
        if (x->open[axis])
            return refuse(m, "output_shape or auto_pad along a free dimension");
        int64_t size =
            shape ? shape[count - (size_t)w->axes + (size_t)i] : x->dim[axis] * w->stride[i];
        int64_t all = w->stride[i] * (x->dim[axis] - 1) + extra[i] +
                      (w->kernel[i] - 1) * w->dilation[i] + 1 - size;
        int64_t half = (all - (all < 0 && all % 2)) / 2; /* down, as ONNX has it */
        w->pad[i] = upper ? half : all - half;
        w->pad[w->axes + i] = all - w->pad[i];
    }
    return true;
}

/* Margins that are negative add to the result instead. */
static const Expr *spread(Import *m, const Expr *y, int rank, const Window *w)
{
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    bool any = false;
    for (int i = 0; i < w->axes; i++) {
        before[rank - w->axes + i] = w->pad[i] < 0 ? -w->pad[i] : 0;
        after[rank - w->axes + i] = w->pad[w->axes + i] < 0 ? -w->pad[w->axes + i] : 0;
        any |= w->pad[i] < 0 || w->pad[w->axes + i] < 0;
    }
    return any ? CALL(m, "pad", {y}, {ints(m, (size_t)rank, before), "before"},
                      {ints(m, (size_t)rank, after), "after"})
               : y;
}

static bool conv_transpose(Import *m)
{
    static const char *const names[] = {"", "conv_transpose2d", "conv_transpose2d",
                                        "conv_transpose3d"};
    Window w = {0}, cut;
    int64_t extra[MAX_AXES] = {0};
    if (!take_operands(m, &w) || !read_list(m, "output_padding", (size_t)w.axes, extra) ||
        !pad_to(m, given(m, 0), &w, extra))
        return false;
    cut = w;
    bool less = false;
    for (int i = 0; i < 2 * w.axes; i++) {
        less |= w.pad[i] < 0;
        cut.pad[i] = w.pad[i] < 0 ? 0 : w.pad[i];
    }
    bool flat = w.axes == 1;
    const Expr *x = use(m, 0), *k = weight(m, 1, "weight"), *bias = weight(m, 2, "bias");
    if (less && bias)
        return refuse(m, "a result that is larger than its windows reach, with a bias");
    if (flat) {
        x = CALL(m, "unsqueeze", {x}, {integer(m, 2), "axis"});
        k = CALL(m, "unsqueeze", {k}, {integer(m, 2), "axis"});
    }
    int64_t groups = attr_int(m, "group", 1);
    const Expr *y =
        CALL(m, names[w.axes], {x}, {k, "w"}, {bias, "b"},
             {bias ? NULL : boolean(m, false), "bias"}, {window_ints(m, &w, w.stride, 1), "stride"},
             {window_pads(m, &cut), "pad"}, {window_ints(m, &w, extra, 0), "output_pad"},
             {window_ints(m, &w, w.dilation, 1), "dilation"},
             {groups == 1 ? NULL : integer(m, groups), "groups"});
    if (flat)
        y = CALL(m, "squeeze", {y}, {integer(m, 2), "axis"});
    return result(m, 0, spread(m, y, given(m, 0)->rank, &w));
}

const Translation onnx_conv[] = {
    {"Conv", 1, conv},
    {"ConvTranspose", 1, conv_transpose},
    {0},
};
