/* Reading and writing at places that a tensor gives. */
#include "frontend/onnx/translate.h"

#include <string.h>

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
    const Expr *at = use_declared(m, 1);
    if (is_table(x, axis))
        return result_as(m, 0, CALL(m, "embedding", {at, "ids"}, {weight(m, 0, "table"), "table"}),
                         x->elem);
    return result_as(m, 0,
                     CALL(m, "gather", {use(m, 0), "x"}, {at, "index"}, {integer(m, axis), "axis"}),
                     x->elem);
}

static bool gather_elements(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    if (!x || !given(m, 1) || !take_axis(m, attr_int(m, "axis", 0), x->rank, &axis))
        return refuse(m, "it needs a tensor and an index");
    return result_as(m, 0,
                     CALL(m, "gather_elements", {use(m, 0), "x"}, {use(m, 1), "index"},
                          {integer(m, axis), "axis"}),
                     x->elem);
}

static bool gather_nd(Import *m)
{
    int64_t shared = attr_int(m, "batch_dims", 0);
    if (!given(m, 0) || !given(m, 1))
        return refuse(m, "it needs a tensor and an index");
    return result_as(m, 0,
                     CALL(m, "gather_nd", {use(m, 0), "x"}, {use(m, 1), "index"},
                          {shared ? integer(m, shared) : NULL, "batch_dims"}),
                     given(m, 0)->elem);
}

static const Expr *reduction(Import *m)
{
    const char *how = attr_word(m, "reduction", "none");
    return strcmp(how, "none") == 0 ? NULL : word(m, how);
}

static bool scatter(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    if (inputs(m) != 3 || !x || !take_axis(m, attr_int(m, "axis", 0), x->rank, &axis))
        return refuse(m, "it needs a tensor, an index and updates");
    return result_as(m, 0,
                     CALL(m, "scatter", {use(m, 0), "x"}, {use(m, 1), "index"},
                          {use(m, 2), "updates"}, {reduction(m), "reduction"},
                          {integer(m, axis), "axis"}),
                     x->elem);
}

static bool scatter_nd(Import *m)
{
    if (inputs(m) != 3 || !given(m, 0))
        return refuse(m, "it needs a tensor, an index and updates");
    return result_as(m, 0,
                     CALL(m, "scatter_nd", {use(m, 0), "x"}, {use(m, 1), "index"},
                          {use(m, 2), "updates"}, {reduction(m), "reduction"}),
                     given(m, 0)->elem);
}

static bool topk(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    int64_t count, k = attr_int(m, "k", 1);
    if (!x || !take_axis(m, attr_int(m, "axis", -1), x->rank, &axis))
        return refuse(m, "it has no operand");
    if (opset(m) >= 10) {
        const int64_t *at = known_ints(m, 1, "k", &count);
        if (!at)
            return false;
        k = at[0];
    }
    bool largest = attr_int(m, "largest", 1);
    const Expr *both =
        CALL(m, "topk", {use(m, 0)}, {integer(m, k), "k"}, {integer(m, axis), "axis"},
             {largest ? NULL : boolean(m, false), "largest"});
    const Tensor *part[2];
    return state_several(m, both, 2, part) && result_as(m, 0, part[0]->expr, x->elem) &&
           result_as(m, 1, part[1]->expr, ELEM_INT64);
}

/* values[1] at the class, values[0] elsewhere; an invalid class matches nowhere. */
static bool one_hot(Import *m)
{
    const Tensor *ids = given(m, 0);
    int64_t count;
    if (inputs(m) != 3 || !ids)
        return refuse(m, "it needs classes, their number and two values");
    const int64_t *depth = known_ints(m, 1, "depth", &count);
    if (!depth)
        return false;
    int rank = ids->rank + 1, axis;
    if (!take_axis(m, attr_int(m, "axis", -1), rank, &axis) || rank > MAX_RANK)
        return false;
    const Expr *dim[MAX_RANK], *down[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        dim[i] = i == axis ? integer(m, 1) : size_of(m, ids, i < axis ? i : i - 1);
        down[i] = integer(m, i == axis ? depth[0] : 1);
    }
    const Tensor *from =
        state(m, ids->dtype == I64 ? use_declared(m, 0) : cast(m, use_declared(m, 0), I64));
    if (!from)
        return false;
    const Expr *wrapped =
        CALL(m, "where", {binary(m, "less", from->expr, integer(m, 0))},
             {binary(m, "add", from->expr, integer(m, depth[0])), "x"}, {from->expr, "y"});
    const Expr *places =
        reshape(m, CALL(m, "arange", {integer(m, depth[0]), "count"}), (size_t)rank, down);
    const Expr *hot = binary(m, "equal", reshape(m, wrapped, (size_t)rank, dim), places);
    const Tensor *values = state(m, use(m, 2));
    if (!values)
        return false;
    Subscript first = {.kind = SUBSCRIPT_INDEX, .start = integer(m, 0)};
    Subscript second = {.kind = SUBSCRIPT_INDEX, .start = integer(m, 1)};
    return result_as(m, 0,
                     CALL(m, "where", {hot}, {subscripts(m, values->expr, 1, &second), "x"},
                          {subscripts(m, values->expr, 1, &first), "y"}),
                     given(m, 2)->elem);
}

static bool compress(Import *m)
{
    const Tensor *x = given(m, 0);
    int64_t count, kept = 0;
    int axis = 0;
    const int64_t *takes = x ? known_ints(m, 1, "condition", &count) : NULL;
    if (!takes)
        return false;
    const Expr *all[] = {integer(m, -1)};
    const Expr *from = has_attr(m, "axis") ? use(m, 0) : reshape(m, use(m, 0), 1, all);
    if (has_attr(m, "axis") && !take_axis(m, attr_int(m, "axis", 0), x->rank, &axis))
        return false;
    Number *number = number_array(m, count);
    for (int64_t i = 0; i < count; i++)
        if (takes[i])
            number[kept++] = (Number){.integer = i, .real = (double)i};
    if (!kept)
        return refuse(m, "nothing is left, and gplan has no tensors without elements");
    const Expr *at = numbers_expr(m, ELEM_INT64, 1, &kept, number);
    return at &&
           result_as(m, 0,
                     CALL(m, "gather", {from, "x"}, {at, "index"}, {integer(m, axis), "axis"}),
                     x->elem);
}

const Translation onnx_index[] = {
    {"Gather", 1, gather},
    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},
    {"Scatter", 9, scatter},
    {"ScatterElements", 11, scatter},
    {"ScatterND", 11, scatter_nd},
    {"TopK", 1, topk},
    {"OneHot", 9, one_hot},
    {"Compress", 9, compress},
    {0},
};
