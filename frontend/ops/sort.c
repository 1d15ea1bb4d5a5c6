/* topk: the places of the first elements of a sorted line, and the elements there. */
#include "frontend/ops/rules.h"

static bool shape_top_indices(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    x.dim[call_int(c, "axis")] = call_int(c, "k");
    return call_output(g, c, I64, x.rank, x.dim);
}

static bool build_topk(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    int64_t k = call_int(c, "k");
    int axis;
    if (!call_axis(g, c, "axis", x.rank, &axis))
        return false;
    if (k < 1 || k > x.dim[axis])
        return call_error_at(g, c, 0, "k = %lld must be from 1 to the %lld of axis %d of %s",
                             (long long)k, (long long)x.dim[axis], axis,
                             use_text(g, call_operand(c, 0)));
    Call top = call_begin(g, c, "top_indices");
    call_set(&top, "k", (double)k);
    call_set(&top, "axis", axis);
    call_set(&top, "largest", (double)call_int(c, "largest"));
    call_use(g, &top, call_operand(c, 0));
    if (!call_finish(g, &top))
        return false;
    Call values = call_begin(g, c, "gather_elements");
    call_set(&values, "axis", axis);
    call_use(g, &values, call_operand(c, 0));
    call_use(g, &values, top.result.at[0]);
    if (!call_finish(g, &values))
        return false;
    call_result(g, c, values.result.at[0]);
    call_result(g, c, top.result.at[0]);
    return true;
}

/* Comparisons of a heap. */
static double flops_top(const Graph *g, Id node)
{
    double k = node_attr(g, node, "k")->number, depth = 1;
    for (; k > 1; k /= 2)
        depth++;
    return flops_of(g, node, depth);
}

static int batch_top(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return batch_beside(g, n, "axis", axis);
}

const OpRow ops_sort[] = {
    {.name = "topk",
     .help = "two results: the k largest along an axis, largest first, and their i64 indices; of "
             "equals the first comes first, and NaN counts as largest",
     .args =
         {{.name = "x", .help = "any dtype, one dimension or more"},
          {.name = "k", .kind = ARG_INT, .flags = ARG_FRONT, .help = "how many; all: a sort"},
          {.name = "axis", .kind = ARG_INT, .flags = ARG_FRONT, .fallback = "-1", .help = "which"},
          {.name = "largest",
           .kind = ARG_BOOL,
           .flags = ARG_FRONT,
           .fallback = "true",
           .help = "false: the smallest, smallest first"}},
     .build = build_topk},
    {.name = "top_indices",
     .args = {{.name = "x"},
              {.name = "k", .kind = ARG_INT, .flags = ARG_FRONT},
              {.name = "axis", .kind = ARG_INT},
              {.name = "largest", .kind = ARG_BOOL}},
     .flags = OP_HIDDEN | OP_HALF,
     .shape = shape_top_indices,
     .flops = flops_top,
     .batch = batch_top},
    {0},
};
