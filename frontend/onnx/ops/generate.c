/* Tensors that are counted rather than read: ranges, triangles. */
#include "frontend/onnx/translate.h"

#include <math.h>

/* 0, 1, 2, ...: count of them. */
static const Expr *count_up(Import *m, const Expr *count)
{
    return CALL(m, "arange", {count, "count"});
}

static bool range_known(Import *m, const Number *from, const Number *step, int64_t count)
{
    int elem = given(m, 0)->elem;
    Number *number = number_array(m, count);
    for (int64_t i = 0; i < count; i++) {
        number[i].real = from->real + (double)i * step->real;
        number[i].integer = from->integer + i * step->integer;
    }
    return result_numbers(m, 0, elem, 1, &count, number);
}

static bool range(Import *m)
{
    int64_t one;
    const Number *from = known(m, 0, "start", &one);
    const Number *to = from ? known(m, 1, "limit", &one) : NULL;
    const Number *step = to ? known(m, 2, "delta", &one) : NULL;
    if (!step)
        return false;
    bool whole = !elem_is_float(given(m, 0)->elem);
    if (step->real == 0)
        return refuse(m, "delta is 0");
    if (!from->expr && !to->expr && !step->expr) {
        double count = ceil((to->real - from->real) / step->real);
        if (!(count >= 1 && count <= MAX_NUMBERS))
            return refuse(m, "%.0f numbers", count);
        return range_known(m, from, step, (int64_t)count);
    }
    if (!whole || step->expr || step->integer != 1)
        return refuse(m, "a range of reals, or with a step, that follows from a free dimension");
    const Expr *count = number_expr(m, to, I64), *start = number_expr(m, from, I64);
    bool zero = !from->expr && from->integer == 0;
    const Expr *y = count_up(m, zero ? count : binary(m, "sub", count, start));
    return result_as(m, 0, zero ? y : binary(m, "add", y, start), given(m, 0)->elem);
}

static bool trilu(Import *m)
{
    const Tensor *x = given(m, 0);
    int64_t one, k = 0;
    if (!x || x->rank < 2)
        return refuse(m, "it needs a matrix");
    if (given(m, 1)) {
        const int64_t *at = known_ints(m, 1, "k", &one);
        if (!at)
            return false;
        k = at[0];
    }
    const Expr *down[] = {integer(m, -1), integer(m, 1)};
    const Expr *row_at = reshape(m, count_up(m, size_of(m, x, x->rank - 2)), 2, down);
    const Tensor *line = state(m, row_at);
    const Tensor *column = line ? state(m, count_up(m, size_of(m, x, x->rank - 1))) : NULL;
    if (!column)
        return false;
    const Expr *diagonal = k ? binary(m, "add", line->expr, integer(m, k)) : line->expr;
    const char *op = attr_int(m, "upper", 1) ? "greater_equal" : "less_equal";
    const Expr *kept = binary(m, op, column->expr, diagonal);
    if (x->dtype == BOOL)
        return result(m, 0, CALL(m, "and", {use(m, 0)}, {kept}));
    return result_as(
        m, 0, CALL(m, "where", {kept, "condition"}, {use(m, 0), "x"}, {zero_like(m, x), "y"}),
        x->elem);
}

static bool eye_like(Import *m)
{
    const Tensor *x = given(m, 0);
    if (!x || x->rank != 2)
        return refuse(m, "it needs a matrix");
    int elem = (int)attr_int(m, "dtype", x->elem);
    int64_t k = attr_int(m, "k", 0);
    const Expr *down[] = {integer(m, -1), integer(m, 1)};
    const Expr *line = reshape(m, count_up(m, size_of(m, x, 0)), 2, down);
    if (k)
        line = binary(m, "add", line, integer(m, k));
    return result_as(m, 0, binary(m, "equal", line, count_up(m, size_of(m, x, 1))), elem);
}

const Translation onnx_generate[] = {
    {"EyeLike", 9, eye_like},
    {"Range", 11, range},
    {"Trilu", 14, trilu},
    {0},
};
