/* Reading at places that a tensor gives. ONNX counts negative ones from the end. */
#include "frontend/onnx/translate.h"

#include <string.h>

/* An index as gplan takes it: from 0 to less than the size. */
static const Expr *places(Import *m, int i, const Tensor *x, int axis)
{
    const Tensor *index = given(m, i);
    int64_t count;
    const Number *number = numbers(m, index);
    if (number) { /* what is known is counted here */
        bool negative = false, open = false;
        count = 1;
        for (int k = 0; k < index->rank; k++)
            count *= index->dim[k];
        for (int64_t k = 0; k < count; k++) {
            negative |= number[k].integer < 0;
            open |= number[k].expr != NULL;
        }
        if (!negative || open || x->open[axis])
            return negative ? NULL : use_declared(m, i);
        Number *forward = number_array(m, count);
        for (int64_t k = 0; k < count; k++) {
            int64_t at = number[k].integer + (number[k].integer < 0 ? x->dim[axis] : 0);
            forward[k] = (Number){.integer = at, .real = (double)at};
        }
        return numbers_expr(m, index->elem, index->rank, index->dim, forward);
    }
    const Tensor *at = state(m, use(m, i));
    if (!at)
        return NULL;
    const Expr *below = binary(m, "less", at->expr, integer(m, 0));
    return CALL(m, "where", {below}, {binary(m, "add", at->expr, size_of(m, x, axis)), "x"},
                {at->expr, "y"});
}

static bool is_table(const Tensor *x, int axis)
{
    return x->initializer && elem_is_float(x->elem) && x->rank == 2 && axis == 0;
}

static bool gather(Import *m)
{
    const Tensor *x = given(m, 0), *index = given(m, 1);
    int axis;
    if (!x || !index || !take_axis(m, attr_int(m, "axis", 0), x->rank, &axis))
        return refuse(m, "it needs a tensor and an index");
    const Number *number = numbers(m, index);
    if (number && index->rank == 0 && !number->expr && x->expr) { /* one place: a view */
        Subscript s[MAX_RANK];
        for (int i = 0; i < axis; i++)
            s[i] = (Subscript){.kind = SUBSCRIPT_RANGE};
        s[axis] = (Subscript){.kind = SUBSCRIPT_INDEX, .start = integer(m, number->integer)};
        return result(m, 0, subscripts(m, use(m, 0), (size_t)axis + 1, s));
    }
    const Expr *at = places(m, 1, x, axis);
    if (!at)
        return refuse(m, "a negative index along a free dimension");
    if (is_table(x, axis))
        return result_as(m, 0, CALL(m, "embedding", {at, "ids"}, {weight(m, 0, "table"), "table"}),
                         x->elem);
    return result_as(m, 0,
                     CALL(m, "gather", {use(m, 0), "x"}, {at, "index"}, {integer(m, axis), "axis"}),
                     x->elem);
}

/* Elements along an axis: a gather from a flat tensor, where each line knows where it begins. */
static bool gather_elements(Import *m)
{
    const Tensor *x = given(m, 0), *index = given(m, 1);
    int axis;
    if (!x || !index || x->rank != index->rank ||
        !take_axis(m, attr_int(m, "axis", 0), x->rank, &axis))
        return refuse(m, "it needs a tensor and an index of as many dimensions");
    int64_t step = 1, count = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        if (x->open[i] || index->open[i])
            return refuse(m, "along a free dimension");
        count *= index->dim[i];
    }
    for (int i = axis + 1; i < x->rank; i++)
        step *= x->dim[i];
    if (count > MAX_NUMBERS)
        return refuse(m, "on more than %d elements", MAX_NUMBERS);
    Number *begin = number_array(m, count);
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k, at = 0, stride = 1;
        for (int i = x->rank - 1; i >= 0; i--) {
            at += i == axis ? 0 : rest % index->dim[i] * stride;
            rest /= index->dim[i];
            stride *= x->dim[i];
        }
        begin[k] = (Number){.integer = at, .real = (double)at};
    }
    const Expr *from = numbers_expr(m, ELEM_INT64, x->rank, index->dim, begin);
    const Expr *place = places(m, 1, x, axis), *all[1] = {integer(m, -1)};
    if (!from || !place)
        return false;
    if (index->dtype != I64)
        place = cast(m, place, I64);
    const Expr *at = binary(m, "add", binary(m, "mul", place, integer(m, step)), from);
    return result_as(m, 0,
                     CALL(m, "gather", {reshape(m, use(m, 0), 1, all), "x"}, {at, "index"},
                          {integer(m, 0), "axis"}),
                     x->elem);
}

const Translation onnx_index[] = {
    {"Gather", 1, gather},
    {"GatherElements", 11, gather_elements},
    {0},
};
