/* Ops that make one tensor of several, or a larger one of one. */
#include "frontend/ops/rules.h"

#include <math.h>

/* All operands have the dtype of the first and its dims, save on `axis` (-1: everywhere). */
static bool check_alike(Graph *g, const Call *c, int axis)
{
    View first = call_view(g, c, 0);
    for (int i = 1; i < (int)c->use.count; i++) {
        View view = call_view(g, c, i);
        if (call_dtype(g, c, i) != call_dtype(g, c, 0))
            return call_error_at(g, c, i, "dtypes differ: %s and %s",
                                 use_text(g, call_operand(c, 0)), use_text(g, call_operand(c, i)));
        bool alike = view.rank == first.rank;
        for (int d = 0; alike && d < view.rank; d++)
            alike = d == axis || view.dim[d] == first.dim[d];
        if (!alike && axis >= 0)
            return call_error_at(g, c, i, "shapes differ on more than axis %d: %s and %s", axis,
                                 use_text(g, call_operand(c, 0)), use_text(g, call_operand(c, i)));
        if (!alike)
            return call_error_at(g, c, i, "shapes differ: %s and %s",
                                 use_text(g, call_operand(c, 0)), use_text(g, call_operand(c, i)));
    }
    return true;
}

static bool check_any(Graph *g, const Call *c)
{
    for (int i = 0; i < (int)c->use.count; i++)
        if (!call_has(c, i))
            return call_error(g, c, "argument %d is missing", i + 1);
    return c->use.count > 0 || call_error(g, c, "needs at least one tensor");
}

static bool shape_concat(Graph *g, Call *c)
{
    int axis;
    if (!check_any(g, c))
        return false;
    View out = call_view(g, c, 0);
    if (!call_axis(g, c, "axis", out.rank, &axis) || !check_alike(g, c, axis))
        return false;
    call_set(c, "axis", axis);
    for (int i = 1; i < (int)c->use.count; i++) {
        int64_t more = call_view(g, c, i).dim[axis];
        if (out.dim[axis] > INT64_MAX - more)
            return call_error(g, c, "the size of axis %d would exceed 2^63", axis);
        out.dim[axis] += more;
    }
    return call_output(g, c, call_dtype(g, c, 0), out.rank, out.dim);
}

static bool build_stack(Graph *g, Call *c)
{
    int axis;
    if (!check_any(g, c) || !check_alike(g, c, -1))
        return false;
    int rank = call_view(g, c, 0).rank + 1;
    if (rank > MAX_RANK)
        return call_error_at(g, c, 0, "%s would have more than %d dimensions",
                             use_text(g, call_operand(c, 0)), MAX_RANK);
    if (!call_axis(g, c, "axis", rank, &axis))
        return false;
    Call concat = call_begin(g, c, "concat");
    call_set(&concat, "axis", axis);
    for (int i = 0; i < (int)c->use.count; i++) {
        View view = call_view(g, c, i), out = {.rank = (uint8_t)rank, .offset = view.offset};
        for (int d = 0; d < rank; d++) {
            out.dim[d] = d == axis ? 1 : view.dim[d - (d > axis)];
            out.stride[d] = d == axis ? 1 : view.stride[d - (d > axis)];
        }
        call_use(g, &concat, use_make(g, call_operand(c, i).value, out));
    }
    if (!call_finish(g, &concat))
        return false;
    call_result(g, c, concat.result.at[0]);
    return true;
}

/* A list of one number is used for every axis. */
static bool margins(Graph *g, const Call *c, const char *setting, int rank, int64_t *margin)
{
    const Attr *list = call_attr(c, setting);
    if (list->count != 1 && list->count != rank)
        return call_error_at(g, c, 0, "%s must be one number, or one for each axis of %s", setting,
                             use_text(g, call_operand(c, 0)));
    for (int i = 0; i < rank; i++) {
        margin[i] = list->list[list->count == 1 ? 0 : i];
        if (margin[i] < -(INT64_C(1) << 60) || margin[i] > INT64_C(1) << 60)
            return call_error(g, c, "%s = %lld is out of range", setting, (long long)margin[i]);
    }
    return true;
}

/* The dtype of x holds the value of the margin. */
static bool check_value(Graph *g, const Call *c)
{
    static const double least[DTYPES] = {[I32] = -0x1p31, [I64] = -0x1p53};
    static const double most[DTYPES] = {[I32] = 0x1p31 - 1, [I64] = 0x1p53, [U8] = 255, [BOOL] = 1};
    Dtype dtype = call_dtype(g, c, 0);
    double value = call_attr(c, "value")->number;
    const Dtype narrow = precision_of(g, c);
    if (dtype == F32 && dtype_is_narrow(narrow) && !dtype_holds(narrow, value))
        return call_error_at(g, c, 0, "value = %g does not fit in %s", value, dtype_name(narrow));
    if (dtype == F32 || (value >= least[dtype] && value <= most[dtype] && value == floor(value)))
        return true;
    return call_error_at(g, c, 0, "value = %g does not fit in %s", value, dtype_name(dtype));
}

/* A margin below 0 takes elements away: operand 0 becomes what is left, and the margin 0. */
static bool crop(Graph *g, Call *c, int64_t *before, int64_t *after)
{
    View view = call_view(g, c, 0);
    for (int i = 0; i < view.rank; i++) {
        int64_t first = before[i] < 0 ? -before[i] : 0, last = after[i] < 0 ? -after[i] : 0;
        if (first + last >= view.dim[i])
            return call_error_at(g, c, 0, "takes all away of axis %d of %s", i,
                                 use_text(g, call_operand(c, 0)));
        if (first || last)
            c->use.at[0] = use_window(g, c->use.at[0], i, first, view.dim[i] - first - last);
        before[i] = first ? 0 : before[i];
        after[i] = last ? 0 : after[i];
    }
    call_set_list(c, "before", view.rank, before);
    call_set_list(c, "after", view.rank, after);
    return true;
}

static bool shape_pad(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK], dim[MAX_RANK];
    bool same = call_attr(c, "after")->is_word;
    if (!check_value(g, c) || !margins(g, c, "before", view.rank, before) ||
        !margins(g, c, same ? "before" : "after", view.rank, after) || !crop(g, c, before, after))
        return false;
    view = call_view(g, c, 0);
    for (int i = 0; i < view.rank; i++)
        dim[i] = before[i] + view.dim[i] + after[i];
    call_set_list(c, "low", MAX_RANK, before);
    return call_output(g, c, call_dtype(g, c, 0), view.rank, dim);
}

/* Each operand gets its window of the gradient: views, nothing is copied. */
static bool grad_concat(Grad *grad)
{
    const Node node = grad->g->node.at[grad->node];
    int axis = (int)node_attr(grad->g, grad->node, "axis")->list[0];
    int64_t begin = 0;
    for (Id i = 0; i < node.uses; i++) {
        int64_t length = use_view(grad->g, grad_operand(grad, (int)i)).dim[axis];
        if (grad->wanted[i])
            grad->din[i] = use_window(grad->g, grad->dout[0], axis, begin, length);
        begin += length;
    }
    return true;
}

static bool grad_pad(Grad *grad)
{
    View x = use_view(grad->g, grad_operand(grad, 0));
    const Attr low = *node_attr(grad->g, grad->node, "low");
    grad->din[0] = grad->dout[0];
    for (int i = 0; i < x.rank; i++)
        grad->din[0] = use_window(grad->g, grad->din[0], i, low.list[i], x.dim[i]);
    return true;
}

static int batch_concat(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return batch_beside(g, n, "axis", axis);
}

/* Where an axis gets no margin. */
static int batch_pad(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    View x = use_view(g, node_use(g, n, 0));
    return x.dim[axis] == g->value.at[n->value].dim[axis] ? axis : BATCH_MIXED;
}

const OpRow ops_join[] = {
    {.name = "concat",
     .help = "tensors one after the other along an axis; their other dims are equal",
     .args = {{.name = "x", .flags = ARG_VARIADIC, .help = "one or more, of one dtype"},
              {.name = "axis", .kind = ARG_INT, .fallback = "0", .help = "which"}},
     .shape = shape_concat,
     .grad = grad_concat,
     .flags = OP_JOINS | OP_HALF,
     .strided = (uint32_t)ALL_OPERANDS,
     .out_strided = 1,
     .batch = batch_concat},
    {.name = "stack",
     .help = "tensors of one shape along a new axis",
     .args = {{.name = "x", .flags = ARG_VARIADIC, .help = "one or more, of one shape and dtype"},
              {.name = "axis",
               .kind = ARG_INT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "its position in the result"}},
     .build = build_stack},
    {.name = "pad",
     .flags = OP_HALF,
     .help = "a margin of one value around x",
     .args = {{.name = "x", .help = "any dtype and shape"},
              {.name = "before",
               .kind = ARG_INTS,
               .flags = ARG_FRONT,
               .count = MAX_RANK,
               .help = "elements before each axis, taken away where below 0; one number: every "
                       "axis"},
              {.name = "after",
               .kind = ARG_INTS,
               .flags = ARG_FRONT,
               .count = MAX_RANK,
               .fallback = "same",
               .words = "same",
               .help = "elements after each axis; same: as before"},
              {.name = "value", .kind = ARG_FLOAT, .fallback = "0", .help = "of the margin"},
              {.name = "low",
               .kind = ARG_INTS,
               .flags = ARG_HIDDEN,
               .count = MAX_RANK,
               .fallback = "0",
               .help = "elements before each axis"}},
     .shape = shape_pad,
     .grad = grad_pad,
     .strided = 1,
     .batch = batch_pad},
    {0},
};
