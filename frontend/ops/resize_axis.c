/* Resizing by any factor. `resize` goes axis by axis: an element at o of the result is at
 * (o + shift) * mul / div + offset of the operand, whatever the coordinates; resize_axis takes it
 * from there. */
#include "frontend/ops/window.h"

#include <math.h>

#define COORDINATES                                                                \
    "half_pixel pytorch_half_pixel align_corners asymmetric half_pixel_symmetric " \
    "tf_crop_and_resize"
enum { HALF_PIXEL, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, SYMMETRIC, CROP };
enum { NEAREST, LINEAR, CUBIC };

/* Where an axis of `in` elements goes. */
typedef struct {
    int64_t in, out;
    double scale;
} Stretch;

static double setting(const Call *c, const char *name)
{
    return call_attr(c, name)->number;
}

/* Settings of the axis: how its elements are placed. */
static void set_places(const Call *c, Call *to, const Stretch *s)
{
    int how = (int)setting(c, "coordinates");
    double in = (double)s->in, width = s->scale * in; /* of the result, before it is whole */
    double shift = 0.5, mul = 1, div = s->scale, offset = -0.5;
    if (!call_attr(c, "scale")->given) { /* as whole numbers, so that quotients are exact */
        mul = in;
        div = (double)s->out;
    }
    if (how == SYMMETRIC)
        offset += in / 2 * (1 - (double)s->out / width);
    else if (how == ASYMMETRIC)
        shift = offset = 0;
    else if (how == ALIGN_CORNERS || how == CROP) {
        double begin = how == CROP ? setting(c, "begin") : 0;
        double span = how == CROP ? setting(c, "end") - begin : 1;
        shift = 0;
        mul = width > 1 ? span * (in - 1) : 0;
        div = width > 1 ? width - 1 : 1;
        offset = begin * (in - 1) + (width > 1 || how != CROP ? 0 : span * (in - 1) / 2);
    } else if (how == PYTORCH_HALF_PIXEL && width <= 1)
        mul = 0;
    call_set(to, "shift", shift);
    call_set(to, "mul", mul);
    call_set(to, "div", div);
    call_set(to, "offset", offset);
    call_set(to, "bounded", how == CROP);
}

static Use resize_one(Graph *g, const Call *c, Use x, int axis, const Stretch *s)
{
    static const char *const same[] = {"mode",      "round",  "a", "exclude_outside",
                                       "antialias", "outside"};
    Call one = call_begin(g, c, "resize_axis");
    for (int i = 0; i < 6; i++)
        call_set(&one, same[i], setting(c, same[i]));
    call_set(&one, "axis", axis);
    call_set_list(&one, "size", 1, &s->out);
    set_places(c, &one, s);
    call_set(&one, "shrink", setting(c, "antialias") != 0 && s->scale < 1 ? s->scale : 1);
    call_use(g, &one, x);
    return call_finish(g, &one) ? one.result.at[0] : (Use){NONE, NONE};
}

/* The size of axis number `which` of those that are resized, and the factor. */
static bool stretch_of(Graph *g, const Call *c, int which, Stretch *s)
{
    const Attr *size = call_attr(c, "size"), *scale = call_attr(c, "scale");
    if (size->given) {
        s->out = size->list[size->count == 1 ? 0 : which];
        s->scale = scale->given ? scale->number : (double)s->out / (double)s->in;
    } else {
        s->scale = scale->number;
        s->out = s->scale * (double)s->in < (double)MAX_WINDOW
                     ? (int64_t)floor(s->scale * (double)s->in)
                     : MAX_WINDOW + 1;
    }
    if (s->out < 1 || s->out > MAX_WINDOW)
        return call_error(g, c, "an axis of %lld would have %s", (long long)s->in,
                          s->out < 1 ? "nothing left" : "more than 2^31 elements");
    return true;
}

static bool check_resize(Graph *g, const Call *c, int axes)
{
    const Attr *size = call_attr(c, "size"), *scale = call_attr(c, "scale");
    if (!size->given && !scale->given)
        return call_error(g, c, "needs size, as in resize(x, [H, W]), or scale");
    if (scale->given && !(scale->number > 0 && scale->number < 1e9))
        return call_error(g, c, "scale = %g must be positive and less than 1e9", scale->number);
    if (size->given && size->count != 1 && size->count != axes)
        return call_error(g, c, "size takes one number or %d, one for each axis", axes);
    if (setting(c, "antialias") != 0 && (int)setting(c, "mode") == NEAREST)
        return call_error(g, c, "antialias means nothing for mode = nearest");
    return want_f32(g, c, 0);
}

static bool resize_build(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    const Attr *axis = call_attr(c, "axis");
    uint32_t bits;
    int which = 0, axes = axis->count ? axis->count : x.rank > 2 ? x.rank - 2 : 0;
    bool crop = (int)setting(c, "coordinates") == CROP &&
                (setting(c, "begin") != 0 || setting(c, "end") != 1);
    if (axes == 0)
        return call_error_at(g, c, 0, "x must be [N, C, ...], or axis given, not %s",
                             use_text(g, call_operand(c, 0)));
    if (!check_resize(g, c, axes) || !axes_bits(g, c, "axis", x.rank, &bits))
        return false;
    Use use = call_operand(c, 0);
    for (; which < axes; which++) {
        int64_t d = axis->count ? axis->list[which] : which + 2;
        d = d < 0 ? d + x.rank : d;
        Stretch s = {.in = x.dim[d]};
        if (!stretch_of(g, c, which, &s))
            return false;
        if (s.out != s.in || s.scale != 1 || crop)
            use = resize_one(g, c, use, (int)d, &s);
        if (use.value == NONE)
            return false;
    }
    call_result(g, c, use);
    return true;
}

/* ---- Along an axis -------------------------------------------------------------------------- */

static bool axis_shape(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    x.dim[call_int(c, "axis")] = call_attr(c, "size")->list[0];
    return call_output(g, c, F32, x.rank, x.dim);
}

static bool axis_grad(Grad *grad)
{
    Graph *g = grad->g;
    const OpRow *op = g->node.at[grad->node].op;
    View x = use_view(g, grad_operand(grad, 0));
    Call c = call_begin(g, &grad->at, "resize_axis_grad");
    for (int i = 1; op->args[i].name; i++)
        c.attr[op_arg(c.op, op->args[i].name)] = *node_attr(g, grad->node, op->args[i].name);
    call_set_list(&c, "size", 1, &x.dim[call_int(&c, "axis")]);
    call_use(g, &c, grad->dout[0]);
    grad->din[0] = call_finish(g, &c) ? c.result.at[0] : (Use){NONE, NONE};
    return grad->din[0].value != NONE;
}

static double axis_flops(const Graph *g, Id node)
{
    double taps = 2 * node_attr(g, node, "mode")->number / node_attr(g, node, "shrink")->number;
    return (1 + 2 * taps) * (double)value_count(&g->value.at[g->node.at[node].value]);
}

static int batch_axis(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return batch_beside(g, n, "axis", axis);
}

/* clang-format off */
#define FILTER                                                                                 \
    {.name = "mode", .kind = ARG_WORD, .fallback = "nearest", .words = "nearest linear cubic"}, \
    {.name = "round", .kind = ARG_WORD, .fallback = "round_prefer_floor",                      \
     .words = "round_prefer_floor round_prefer_ceil floor ceil",                               \
     .help = "to the nearest element"},                                                        \
    {.name = "a", .kind = ARG_FLOAT, .fallback = "-0.75", .help = "coefficient of cubic"},     \
    {.name = "exclude_outside", .kind = ARG_BOOL, .fallback = "false",                         \
     .help = "weights beyond the edges are 0; else edges are repeated"},                       \
    {.name = "antialias", .kind = ARG_BOOL, .fallback = "false",                               \
     .help = "filters as wide as the part of x that an element of a smaller result covers"},   \
    {.name = "outside", .kind = ARG_FLOAT, .fallback = "0", .help = "tf_crop_and_resize: what is outside of x"}
#define PLACES                                                                                 \
    {.name = "axis", .kind = ARG_INT},                                                         \
    {.name = "size", .kind = ARG_INTS, .count = 1, .flags = ARG_FRONT},                        \
    FILTER,                                                                                    \
    {.name = "shift", .kind = ARG_FLOAT}, {.name = "mul", .kind = ARG_FLOAT},                  \
    {.name = "div", .kind = ARG_FLOAT}, {.name = "offset", .kind = ARG_FLOAT},                 \
    {.name = "shrink", .kind = ARG_FLOAT}, {.name = "bounded", .kind = ARG_BOOL}
/* clang-format on */

const OpRow ops_resize_axis[] = {
    {.name = "resize",
     .args = {{.name = "x", .help = "f32"},
              {.name = "size",
               .kind = ARG_INTS,
               .count = MAX_RANK,
               .flags = ARG_FRONT,
               .fallback = "none",
               .help = "of the axes"},
              {.name = "scale",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "instead of size: floor(length * scale); with size: for coordinates alone"},
              {.name = "axis",
               .kind = ARG_INTS,
               .count = MAX_RANK,
               .flags = ARG_FRONT,
               .fallback = "none",
               .help = "those after the second, where none is given"},
              {.name = "coordinates",
               .kind = ARG_WORD,
               .flags = ARG_FRONT,
               .fallback = "half_pixel",
               .words = COORDINATES,
               .help = "as in ONNX"},
              FILTER,
              {.name = "begin",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "tf_crop_and_resize: of 1, where the result begins"},
              {.name = "end",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "1",
               .help = "and ends"}},
     .build = resize_build,
     .help =
         "axes of x made longer or shorter by any factor, one after the other, as ONNX's Resize"},
    {.name = "resize_axis",
     .args = {{.name = "x"}, PLACES},
     .shape = axis_shape,
     .grad = axis_grad,
     .flops = axis_flops,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_axis},
    {.name = "resize_axis_grad",
     .kernel = "resize_axis",
     .args = {{.name = "dy"}, PLACES},
     .shape = axis_shape,
     .flops = axis_flops,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_axis},
    {0},
};
