/* Pools. */
#include "frontend/onnx/ops/window.h"

#include <math.h>
#include <string.h>

static bool take_window(Import *m, Window *w)
{
    const Tensor *x = given(m, 0);
    size_t count;
    const int64_t *kernel = attr_ints(m, "kernel_shape", &count);
    if (!x || !kernel || x->rank < 3 || x->rank - 2 > MAX_AXES || count != (size_t)x->rank - 2)
        return refuse(m, "kernel_shape does not go with its operand");
    w->axes = x->rank - 2;
    memcpy(w->kernel, kernel, count * sizeof *kernel);
    return read_window(m, x, w);
}

/* A pool by name, with a plane made of a line where there is only that. */
static const Expr *pool(Import *m, const char *const names[], const Expr *x, const Window *w,
                        bool count_pad)
{
    bool flat = w->axes == 1, dilated = false;
    for (int i = 0; i < w->axes; i++)
        dilated |= w->dilation[i] != 1;
    if (flat)
        x = CALL(m, "unsqueeze", {x}, {integer(m, 2), "axis"});
    bool up = attr_int(m, "ceil_mode", 0);
    const Expr *y = CALL(m, names[w->axes], {x}, {window_ints(m, w, w->kernel, 1), "kernel"},
                         {window_ints(m, w, w->stride, 1), "stride"}, {window_pads(m, w), "pad"},
                         {up ? boolean(m, true) : NULL, "ceil"},
                         {count_pad ? boolean(m, true) : NULL, "count_include_pad"},
                         {dilated ? window_ints(m, w, w->dilation, 1) : NULL, "dilation"});
    return flat ? CALL(m, "squeeze", {y}, {integer(m, 2), "axis"}) : y;
}

static bool max_pool(Import *m)
{
    static const char *const names[] = {"", "maxpool2d", "maxpool2d", "maxpool3d"};
    static const char *const places[] = {"", "maxpool2d_indices", "maxpool2d_indices", NULL};
    Window w = {0};
    if (!take_window(m, &w))
        return false;
    const Tensor *x = given(m, 0);
    const Expr *from = x->dtype == F32 ? use(m, 0) : cast(m, use(m, 0), F32);
    if (!result_as(m, 0, pool(m, names, from, &w, false), x->elem))
        return false;
    if (!wanted(m, 1))
        return true;
    if (!places[w.axes] || x->open[0] || x->open[1])
        return refuse(m, "indices of a volume, or along a free dimension");
    /* gplan counts within a plane, ONNX through the whole tensor; by columns where told so. */
    const Tensor *at = state(m, pool(m, places, from, &w, false));
    if (!at)
        return false;
    int64_t height = w.axes == 1 ? 1 : x->dim[2], width = x->dim[x->rank - 1];
    const Expr *place = at->expr;
    if (attr_int(m, "storage_order", 0) && w.axes == 2) {
        const Expr *line = CALL(m, "intdiv", {place}, {integer(m, width)});
        const Expr *column = binary(m, "sub", place, binary(m, "mul", line, integer(m, width)));
        place = binary(m, "add", binary(m, "mul", column, integer(m, height)), line);
    }
    int64_t planes = x->dim[0] * x->dim[1], dim[MAX_RANK] = {x->dim[0], x->dim[1], 1, 1, 1};
    Number *start = number_array(m, planes);
    for (int64_t i = 0; i < planes; i++)
        start[i] = (Number){.integer = i * height * width, .real = (double)(i * height * width)};
    const Expr *base = numbers_expr(m, ELEM_INT64, x->rank, dim, start);
    return base && result_as(m, 1, binary(m, "add", place, base), ELEM_INT64);
}

static const char *const averages[] = {"", "avgpool2d", "avgpool2d", "avgpool3d"};

static bool average_pool(Import *m)
{
    Window w = {0};
    return take_window(m, &w) &&
           result(m, 0, pool(m, averages, use(m, 0), &w, attr_int(m, "count_include_pad", 0)));
}

/* (sum of |x|^p)^(1/p), the sum as a mean times the size of the window. */
static bool lp_pool(Import *m)
{
    Window w = {0};
    double p =
        has_attr(m, "p") && opset(m) >= 2 ? (double)attr_int(m, "p", 2) : attr_float(m, "p", 2);
    if (!take_window(m, &w))
        return false;
    double count = 1;
    for (int i = 0; i < w.axes; i++)
        count *= (double)w.kernel[i];
    const Expr *powers = CALL(m, "pow", {CALL(m, "abs", {use(m, 0)})}, {real(m, p)});
    const Expr *sum = binary(m, "mul", pool(m, averages, powers, &w, true), real(m, count));
    return result(m, 0, CALL(m, "pow", {sum}, {real(m, 1 / p)}));
}

/* Over all of space. */
static const Expr *space(Import *m, const Tensor *x)
{
    int64_t axes[MAX_RANK];
    for (int i = 2; i < x->rank; i++)
        axes[i - 2] = i;
    return ints(m, (size_t)x->rank - 2, axes);
}

static bool global(Import *m)
{
    const Tensor *x = given(m, 0);
    if (!x || x->rank < 3)
        return refuse(m, "its operand has no space");
    return result(
        m, 0, CALL(m, row(m), {use(m, 0)}, {space(m, x), "axis"}, {boolean(m, true), "keepdims"}));
}

static bool global_lp(Import *m)
{
    const Tensor *x = given(m, 0);
    double p = opset(m) >= 2 ? (double)attr_int(m, "p", 2) : attr_float(m, "p", 2);
    if (!x || x->rank < 3)
        return refuse(m, "its operand has no space");
    const Expr *powers = CALL(m, "pow", {CALL(m, "abs", {use(m, 0)})}, {real(m, p)});
    const Expr *sum =
        CALL(m, "sum", {powers}, {space(m, x), "axis"}, {boolean(m, true), "keepdims"});
    return result(m, 0, CALL(m, "pow", {sum}, {real(m, 1 / p)}));
}

const Translation onnx_pool[] = {
    {"MaxPool", 1, max_pool},
    {"AveragePool", 1, average_pool},
    {"LpPool", 1, lp_pool},
    {"GlobalAveragePool", 1, global, "mean"},
    {"GlobalMaxPool", 1, global, "max"},
    {"GlobalLpPool", 1, global_lp},
    {0},
};
