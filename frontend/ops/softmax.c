/* softmax and its logarithm along an axis. */
#include "frontend/ops/rules.h"

static bool shape_softmax(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    int axis;
    if (!want_f32(g, c, 0))
        return false;
    if (view.rank == 0)
        return call_error_at(g, c, 0, "takes a tensor of one dimension or more, not a number");
    if (!call_axis(g, c, "axis", view.rank, &axis))
        return false;
    call_set(c, "axis", axis);
    return call_output(g, c, F32, view.rank, view.dim);
}

static double flops_softmax(const Graph *g, Id node)
{
    return flops_of(g, node, 5);
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
     .flops = flops_softmax,
     .inplace = 1},
    {.name = "log_softmax",
     .kernel = "softmax",
     .help = "x - log(sum(exp(x))) along an axis; same shape",
     .args = SOFTMAX_ARGS,
     .shape = shape_softmax,
     .flops = flops_softmax,
     .inplace = 1},
    {0},
};
