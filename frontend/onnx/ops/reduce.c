/* Sums and their like over axes. */
#include "frontend/onnx/translate.h"

#include <string.h>

/* The axes: an attribute at first, an input from opset 13 or 18 on. False with a message; *all:
 * over every axis; *none: over no axis. */
static bool take_axes(Import *m, const Expr **axes, bool *none)
{
    const int64_t *axis;
    int64_t count;
    if (!given(m, 0))
        return refuse(m, "it has no operand");
    if (!ints_of(m, "axes", 1, &axis, &count))
        return false;
    *none = count <= 0 && attr_int(m, "noop_with_empty_axes", 0);
    *axes = count > 0 ? ints(m, (size_t)count, axis) : NULL;
    return true;
}

static const Expr *over(Import *m, const char *op, const Expr *x, const Expr *axes)
{
    bool keep = attr_int(m, "keepdims", 1);
    return CALL(m, op, {x}, {axes, "axis"}, {keep ? boolean(m, true) : NULL, "keepdims"});
}

static bool plain(Import *m)
{
    const Expr *axes;
    bool none;
    if (!take_axes(m, &axes, &none))
        return false;
    const Tensor *x = given(m, 0);
    if (none)
        return result_same(m, 0, x);
    return result_as(m, 0, over(m, row(m), use_declared(m, 0), axes), x->elem);
}

static const Expr *f32(Import *m)
{
    const Expr *x = use_declared(m, 0);
    return given(m, 0)->dtype == F32 ? x : cast(m, x, F32);
}

static bool l1(Import *m)
{
    const Expr *axes;
    bool none;
    if (!take_axes(m, &axes, &none))
        return false;
    const Expr *x = CALL(m, "abs", {use_declared(m, 0)});
    return result_as(m, 0, none ? x : over(m, "sum", x, axes), given(m, 0)->elem);
}

static bool l2(Import *m)
{
    const Expr *axes;
    bool none;
    if (!take_axes(m, &axes, &none))
        return false;
    const Expr *x = CALL(m, "square", {f32(m)});
    return result_as(m, 0, CALL(m, "sqrt", {none ? x : over(m, "sum", x, axes)}),
                     given(m, 0)->elem);
}

static bool sum_square(Import *m)
{
    const Expr *axes;
    bool none;
    if (!take_axes(m, &axes, &none))
        return false;
    const Expr *x = CALL(m, "square", {use_declared(m, 0)});
    return result_as(m, 0, none ? x : over(m, "sum", x, axes), given(m, 0)->elem);
}

static bool log_sum(Import *m)
{
    const Expr *axes;
    bool none;
    if (!take_axes(m, &axes, &none))
        return false;
    const Expr *x = f32(m);
    return result_as(m, 0, CALL(m, "log", {none ? x : over(m, "sum", x, axes)}), given(m, 0)->elem);
}

/* log(sum(exp(x - max))) + max, so that nothing overflows. */
static bool log_sum_exp(Import *m)
{
    const Expr *axes;
    bool none;
    if (!take_axes(m, &axes, &none))
        return false;
    if (none)
        return result_same(m, 0, given(m, 0));
    const Expr *x = f32(m);
    const Tensor *most =
        state(m, CALL(m, "max", {x}, {axes, "axis"}, {boolean(m, true), "keepdims"}));
    if (!most)
        return false;
    const Expr *sum = over(m, "sum", CALL(m, "exp", {binary(m, "sub", x, most->expr)}), axes);
    const Expr *back = over(m, "max", x, axes);
    return result_as(m, 0, binary(m, "add", CALL(m, "log", {sum}), back), given(m, 0)->elem);
}

static bool arg(Import *m)
{
    int axis;
    const Tensor *x = given(m, 0);
    if (!x || !take_axis(m, attr_int(m, "axis", 0), x->rank, &axis))
        return refuse(m, "it has no operand");
    bool last = attr_int(m, "select_last_index", 0);
    const Expr *from = use(m, 0);
    if (last)
        from = CALL(m, "flip", {from}, {integer(m, axis), "axis"});
    const Expr *at = over(m, row(m), from, integer(m, axis));
    if (last)
        at = binary(m, "sub", binary(m, "sub", size_of(m, x, axis), integer(m, 1)), at);
    return result_as(m, 0, at, ELEM_INT64);
}

static bool cumsum(Import *m)
{
    int axis;
    int64_t count;
    const Tensor *x = given(m, 0);
    const int64_t *at = x ? known_ints(m, 1, "axis", &count) : NULL;
    if (!at || !take_axis(m, at[0], x->rank, &axis))
        return false;
    bool reverse = attr_int(m, "reverse", 0), exclusive = attr_int(m, "exclusive", 0);
    const Expr *from = use(m, 0);
    if (reverse)
        from = CALL(m, "flip", {from}, {integer(m, axis), "axis"});
    if (exclusive) { /* a zero before, and without the last */
        int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
        if (x->dim[axis] == 1)
            return result_as(m, 0, binary(m, "sub", from, from), x->elem);
        before[axis] = 1;
        from = slice_axis(m, from, axis, integer(m, 0), integer(m, -1));
        from = CALL(m, "pad", {from}, {ints(m, (size_t)x->rank, before), "before"},
                    {ints(m, (size_t)x->rank, after), "after"});
    }
    const Expr *sum = CALL(m, "cumsum", {from}, {integer(m, axis), "axis"});
    if (reverse)
        sum = CALL(m, "flip", {sum}, {integer(m, axis), "axis"});
    return result_as(m, 0, sum, x->elem);
}

const Translation onnx_reduce[] = {
    {"ReduceSum", 1, plain, "sum"},
    {"ReduceMean", 1, plain, "mean"},
    {"ReduceMax", 1, plain, "max"},
    {"ReduceMin", 1, plain, "min"},
    {"ReduceProd", 1, plain, "prod"},
    {"ReduceL1", 1, l1},
    {"ReduceL2", 1, l2},
    {"ReduceSumSquare", 1, sum_square},
    {"ReduceLogSum", 1, log_sum},
    {"ReduceLogSumExp", 1, log_sum_exp},
    {"ArgMax", 1, arg, "argmax"},
    {"ArgMin", 1, arg, "argmin"},
    {"CumSum", 11, cumsum},
    {0},
};
