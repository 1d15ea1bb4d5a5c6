/* Sliding windows over images: what the settings of convolutions and pools mean. Included by the
 * files whose rows have such settings. */
#ifndef GPLAN_OPS_WINDOW_H
#define GPLAN_OPS_WINDOW_H

#include "frontend/ops/rules.h"

enum { PAD_SAME, PAD_VALID }; /* the words of `pad`, in order */

static const int64_t MAX_WINDOW = INT64_C(1) << 31; /* of any such setting: sums cannot overflow */

/* One axis of a window. */
typedef struct {
    int64_t kernel, stride, dilation, begin, end; /* begin, end: the padding */
} WindowAxis;

/* Slices of volumes as images: [A, B, C, H, W] as [A * B, C, H, W]. Whether that takes a copy does
 * not depend on the size of A, so that a model has the same ops for every batch. */
static inline Use window_slices(Graph *g, const Call *from, Use volume)
{
    View v = use_view(g, volume);
    if (v.dim[1] != 1 && v.stride[0] != v.stride[1] * v.dim[1])
        volume = call_op(g, from, "copy", 1, &volume);
    return use_reshape(g, from, volume, 4,
                       (int64_t[]){v.dim[0] * v.dim[1], v.dim[2], v.dim[3], v.dim[4]});
}

/* An operand of this rank and of f32; `dims` names its axes in the message. */
static inline bool window_operand(Graph *g, const Call *c, int operand, int rank, const char *dims)
{
    View v = call_view(g, c, operand);
    if (v.rank != rank)
        return call_error_at(g, c, operand, "%s must be %s, not %s", c->op->args[operand].name,
                             dims, use_text(g, call_operand(c, operand)));
    return want_f32(g, c, operand);
}

/* A setting of one number for each of `count` axes, or one number for all. Leaves `count`. */
static inline bool window_setting(Graph *g, Call *c, const char *name, int count, int64_t least)
{
    Attr *attr = &c->attr[op_arg(c->op, name)];
    if (attr->count != 1 && attr->count != count)
        return call_error(g, c, "%s takes 1 or %d numbers, not %d", name, count, attr->count);
    for (int i = 0; i < count; i++) {
        if (i >= attr->count)
            attr->list[i] = attr->list[0];
        if (attr->list[i] < least || attr->list[i] > MAX_WINDOW)
            return call_error(g, c, "%s = %lld must be in [%lld, 2^31]", name,
                              (long long)attr->list[i], (long long)least);
    }
    attr->count = (uint8_t)count;
    return true;
}

/* Padding that makes out = ceil(in / stride); what is odd goes to the end. */
static inline void window_same(WindowAxis *axis, int64_t in)
{
    int64_t out = (in + axis->stride - 1) / axis->stride;
    int64_t need = (out - 1) * axis->stride + axis->dilation * (axis->kernel - 1) + 1 - in;
    axis->begin = need > 0 ? need / 2 : 0;
    axis->end = need > 0 ? need - axis->begin : 0;
}

/* Resolves `pad` for axes whose kernel, stride and dilation are known: a word, one number, one for
 * each axis, or first all begins and then all ends. Leaves the setting in that last form. */
static inline bool window_pad(Graph *g, Call *c, WindowAxis *axis, int axes, const int64_t *in)
{
    Attr *attr = &c->attr[op_arg(c->op, "pad")];
    if (attr->is_word) {
        for (int i = 0; i < axes; i++) {
            axis[i].begin = axis[i].end = 0;
            if ((int)attr->number == PAD_SAME)
                window_same(&axis[i], in[i]);
        }
    } else {
        int given = attr->count;
        if (given != 1 && given != axes && given != 2 * axes)
            return call_error(
                g, c, "pad takes 1%s %d numbers, the latter the start of each axis, then the end",
                axes == 1 ? " or" : ", 2 or", 2 * axes);
        for (int i = 0; i < axes; i++) {
            axis[i].begin = attr->list[given == 1 ? 0 : i];
            axis[i].end = attr->list[given == 2 * axes ? axes + i : given == 1 ? 0 : i];
            if (axis[i].begin < 0 || axis[i].end < 0 || axis[i].begin > MAX_WINDOW ||
                axis[i].end > MAX_WINDOW)
                return call_error(g, c, "pad must be in [0, 2^31]");
        }
    }
    *attr = (Attr){.count = (uint8_t)(2 * axes), .given = attr->given};
    for (int i = 0; i < axes; i++) {
        attr->list[i] = axis[i].begin;
        attr->list[axes + i] = axis[i].end;
    }
    attr->number = (double)attr->list[0];
    return true;
}

/* How many windows fit along an axis; 0 where none does. With `ceil` one more may hang over the
 * end, if it begins inside the input or the padding before it. */
static inline int64_t window_count(const WindowAxis *axis, int64_t in, bool ceil)
{
    int64_t room = in + axis->begin + axis->end - (axis->dilation * (axis->kernel - 1) + 1);
    if (room < 0)
        return 0;
    int64_t count = (room + (ceil ? axis->stride - 1 : 0)) / axis->stride + 1;
    if (ceil && (count - 1) * axis->stride >= in + axis->begin)
        count--;
    return count;
}

#endif
