/* Softmax and its like. Before opset 13 they worked on a matrix, all axes from one on joined. */
#include "frontend/onnx/translate.h"

static bool softmax(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    if (!x || !take_axis(m, attr_int(m, "axis", -1), x->rank, &axis))
        return refuse(m, "it has no operand");
    return result(m, 0, CALL(m, row(m), {use(m, 0)}, {integer(m, axis), "axis"}));
}

static bool joined(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    if (!x || !take_axis(m, attr_int(m, "axis", 1), x->rank, &axis))
        return refuse(m, "it has no operand");
    if (axis == x->rank - 1)
        return result(m, 0, CALL(m, row(m), {use(m, 0)}, {integer(m, axis), "axis"}));
    const Expr *dim[MAX_RANK], *flat[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dim[i] = flat[i] = size_of(m, x, i);
    flat[axis] = integer(m, -1);
    const Expr *rows = reshape(m, use(m, 0), (size_t)axis + 1, flat);
    const Expr *y = CALL(m, row(m), {rows}, {integer(m, axis), "axis"});
    return result(m, 0, reshape(m, y, (size_t)x->rank, dim));
}

static bool hardmax(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    if (!x || !take_axis(m, attr_int(m, "axis", opset(m) < 13 ? 1 : -1), x->rank, &axis))
        return refuse(m, "it has no operand");
    if (opset(m) < 13 && axis != x->rank - 1)
        return refuse(m, "as of before opset 13, over several axes");
    const Tensor *best = state(m, CALL(m, "argmax", {use(m, 0)}, {integer(m, axis), "axis"}));
    if (!best)
        return false;
    const Expr *hot = CALL(m, "one_hot", {best->expr}, {size_of(m, x, axis), "depth"});
    if (axis == x->rank - 1)
        return result(m, 0, hot);
    int64_t perm[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        perm[i] = i < axis ? i : i == axis ? x->rank - 1 : i - 1;
    return result(m, 0, CALL(m, "transpose", {hot}, {ints(m, (size_t)x->rank, perm), "perm"}));
}

const Translation onnx_softmax[] = {
    {"Softmax", 1, joined, "softmax"},
    {"Softmax", 13, softmax, "softmax"},
    {"LogSoftmax", 1, joined, "log_softmax"},
    {"LogSoftmax", 13, softmax, "log_softmax"},
    {"Hardmax", 1, hardmax},
    {0},
};
