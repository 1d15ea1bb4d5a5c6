/* softmax and its logarithm along an axis. */
#include "frontend/ops/rules.h"

static bool shape_softmax(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    int axis;
    if (!want_f32(g, c, 0))
        return false;
    if (view.rank == 0)
        return call_error_at(g, c, 0, "needs at least one dimension, not a scalar");
    if (!call_axis(g, c, "axis", view.rank, &axis))
        return false;
    call_set(c, "axis", axis);
    return call_output(g, c, F32, view.rank, view.dim);
}

static Use sum_along(Grad *grad, Use x)
{
    Call c = call_begin(grad->g, &grad->at, "sum");
    call_set_list(&c, "axis", 1, node_attr(grad->g, grad->node, "axis")->list);
    call_set(&c, "keepdims", 1);
    call_use(grad->g, &c, x);
    call_finish(grad->g, &c);
    return c.result.at[0];
}

/* y (dy - sum(y dy)): needs the result, not the operand. */
static bool grad_softmax(Grad *grad)
{
    Use y = grad_result(grad, 0), dy = grad->dout[0];
    Use sum = sum_along(grad, grad_op(grad, "mul", 2, (Use[]){y, dy}));
    Use centred = grad_op(grad, "sub", 2, (Use[]){dy, sum});
    grad->din[0] = grad_op(grad, "mul", 2, (Use[]){y, centred});
    return grad->din[0].value != NONE;
}

/* dy - exp(y) sum(dy) */
static bool grad_log_softmax(Grad *grad)
{
    Use y = grad_result(grad, 0), dy = grad->dout[0];
    Use p = grad_op(grad, "exp", 1, &y);
    Use part = grad_op(grad, "mul", 2, (Use[]){p, sum_along(grad, dy)});
    grad->din[0] = grad_op(grad, "sub", 2, (Use[]){dy, part});
    return grad->din[0].value != NONE;
}

static double flops_softmax(const Graph *g, Id node)
{
    return flops_of(g, node, 5);
}

static int batch_softmax(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return batch_beside(g, n, "axis", axis);
}

#define SOFTMAX_ARGS                                                                              \
    {                                                                                             \
        {.name = "x", .help = "f32"},                                                             \
        {                                                                                         \
            .name = "axis", .kind = ARG_INT, .fallback = "-1", .help = "along which it sums to 1" \
        }                                                                                         \
    }

const OpRow ops_softmax[] = {
    {.name = "softmax",
     .help = "exp(x) / sum(exp(x)) along an axis; same shape",
     .args = SOFTMAX_ARGS,
     .shape = shape_softmax,
     .grad = grad_softmax,
     .flops = flops_softmax,
     .flags = OP_HALF,
     .inplace = 1,
     .batch = batch_softmax},
    {.name = "log_softmax",
     .precision = PRECISION_WIDE,
     .kernel = "softmax",
     .help = "x - log(sum(exp(x))) along an axis; same shape",
     .args = SOFTMAX_ARGS,
     .shape = shape_softmax,
     .grad = grad_log_softmax,
     .flops = flops_softmax,
     .flags = OP_HALF,
     .inplace = 1,
     .batch = batch_softmax},
    {0},
};
