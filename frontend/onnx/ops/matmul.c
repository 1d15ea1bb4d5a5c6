/* Matrix products. */
#include "frontend/onnx/translate.h"

static bool matmul(Import *m)
{
    if (!given(m, 0) || !given(m, 1))
        return refuse(m, "it needs two operands");
    const Tensor *a = given(m, 0), *b = given(m, 1);
    if (a->dtype == F32)
        return result(m, 0, binary(m, "matmul", weight(m, 0, "weight"), weight(m, 1, "weight")));
    /* Whole numbers: exact as sums of products over a new axis. */
    if (a->rank < 2 || b->rank < 2)
        return refuse(m, "vectors of whole numbers");
    const Expr *left = CALL(m, "unsqueeze", {use(m, 0)}, {integer(m, -1), "axis"});
    const Expr *right = CALL(m, "unsqueeze", {use(m, 1)}, {integer(m, -3), "axis"});
    return result_as(
        m, 0, CALL(m, "sum", {binary(m, "mul", left, right)}, {integer(m, -2), "axis"}), a->elem);
}

/* alpha * A' B' + beta * C. */
static bool gemm(Import *m)
{
    const Tensor *a = given(m, 0), *b = given(m, 1);
    if (!a || !b || a->rank != 2 || b->rank != 2)
        return refuse(m, "it needs two matrices");
    double alpha = attr_float(m, "alpha", 1), beta = attr_float(m, "beta", 1);
    const Expr *left = weight(m, 0, "weight"), *right = weight(m, 1, "weight");
    if (attr_int(m, "transA", 0))
        left = CALL(m, "transpose", {left});
    if (attr_int(m, "transB", 0))
        right = CALL(m, "transpose", {right});
    const Expr *y;
    if (a->dtype == F32) {
        y = binary(m, "matmul", left, right);
    } else {
        const Expr *wide = CALL(m, "unsqueeze", {left}, {integer(m, 2), "axis"});
        y = CALL(m, "sum", {binary(m, "mul", wide, right)}, {integer(m, 1), "axis"});
    }
    if (alpha != 1)
        y = binary(m, "mul", y, real(m, alpha));
    const Expr *c = beta != 0 ? weight(m, 2, "bias") : NULL;
    if (c && beta != 1)
        c = binary(m, "mul", c, real(m, beta));
    return result_as(m, 0, c ? binary(m, "add", y, c) : y, a->elem);
}

const Translation onnx_matmul[] = {
    {"MatMul", 1, matmul},
    {"Gemm", 1, gemm},
    {0},
};
