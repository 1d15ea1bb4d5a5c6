/* Batch normalization over a batch that ranks divide: each has the statistics of its part, gathers
 * those of all, and merges them in rank order. Backward the sums go the same way. */
#include "frontend/ops/rules.h"

/* Two numbers for each channel. */
static bool shape_part(Graph *g, Call *c)
{
    const View x = call_view(g, c, 0);
    return call_output(g, c, F32, 2, (int64_t[]){2, x.dim[1]});
}

/* Of all ranks, a row each. */
static bool shape_merge(Graph *g, Call *c)
{
    const View all = call_view(g, c, 0);
    if (all.rank != 3 || all.dim[1] != 2)
        return call_error(g, c, "these are no statistics of ranks");
    return call_output(g, c, F32, 1, &all.dim[2]) && call_output(g, c, F32, 1, &all.dim[2]);
}

static bool shape_same(Graph *g, Call *c)
{
    const View x = call_view(g, c, 0);
    return call_output(g, c, F32, x.rank, x.dim);
}

/* What ranks gather, then the gradients of scale and bias of this one. */
static bool shape_sums(Graph *g, Call *c)
{
    const View x = call_view(g, c, 0);
    return shape_part(g, c) && call_output(g, c, F32, 1, &x.dim[1]) &&
           call_output(g, c, F32, 1, &x.dim[1]);
}

/* The statistics depend on x too: that is in dx, and nothing flows to them. */
static bool grad_given(Grad *grad)
{
    Graph *g = grad->g;
    Use given[] = {grad_operand(grad, 0), grad->dout[0], grad_operand(grad, 1),
                   grad_operand(grad, 3), grad_operand(grad, 4)};
    Call sums = call_begin(g, &grad->at, "batchnorm_sums");
    call_use(g, &sums, given[0]);
    call_use(g, &sums, given[1]);
    call_use(g, &sums, given[3]);
    call_use(g, &sums, given[4]);
    if (!call_finish(g, &sums))
        return false;
    const Use all = ranks_rows(g, &grad->at, sums.result.at[0]);
    Call c = call_begin(g, &grad->at, "batchnorm_given_grad");
    for (int i = 0; i < 5; i++)
        call_use(g, &c, given[i]);
    call_use(g, &c, all);
    if (all.value == NONE || !call_finish(g, &c))
        return false;
    grad->din[0] = c.result.at[0];
    grad->din[1] = sums.result.at[1];
    grad->din[2] = sums.result.at[2];
    return true;
}

static double flops_norm(const Graph *g, Id node)
{
    return flops_of(g, node, 6);
}

/* A rank's own, which a gather makes the same on all of them. */
static int batch_part(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)operand, (void)output;
    return axis == 1 ? BATCH_MIXED : BATCH_OWN;
}

/* Each sample on its own, once the statistics are there. */
static int batch_given(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)output;
    return operand == 0 && axis != 1 ? axis : BATCH_MIXED;
}

const OpRow ops_norm_ranks[] = {
    {.name = "batchnorm_part",
     .wide_out = 1,
     .kernel = "batchnorm_ranks",
     .help = "mean and standard deviation of each channel of a rank's part of the batch",
     .args = {{.name = "x"}},
     .shape = shape_part,
     .flops = flops_norm,
     .apart = 1,
     .flags = OP_HIDDEN | OP_HALF | OP_HOST,
     .batch = batch_part},
    {.name = "batchnorm_merge",
     .precision = PRECISION_WIDE,
     .kernel = "batchnorm_ranks",
     .help = "mean and inverse standard deviation of the whole batch, from those of all ranks",
     .args = {{.name = "all"}, {.name = "eps", .kind = ARG_FLOAT}},
     .shape = shape_merge,
     .flags = OP_HIDDEN | OP_HOST,
     .batch = batch_never},
    {.name = "batchnorm_given",
     .statistics = 8 | 16,
     .kernel = "batchnorm_ranks",
     .help = "batchnorm with these statistics",
     .args = {{.name = "x"},
              {.name = "scale"},
              {.name = "bias"},
              {.name = "mean"},
              {.name = "inverse"}},
     .shape = shape_same,
     .grad = grad_given,
     .flops = flops_norm,
     .apart = 1,
     .inplace = 1,
     .flags = OP_HIDDEN | OP_HALF | OP_HOST,
     .batch = batch_given},
    {.name = "batchnorm_sums",
     .statistics = 4 | 8,
     .wide_out = 7,
     .kernel = "batchnorm_ranks",
     .help = "sums of dy, and of dy by the normalized x; the gradients of scale and bias",
     .args = {{.name = "x"}, {.name = "dy"}, {.name = "mean"}, {.name = "inverse"}},
     .shape = shape_sums,
     .flops = flops_norm,
     .apart = 3,
     .flags = OP_HIDDEN | OP_HALF | OP_HOST,
     .batch = batch_never},
    {.name = "batchnorm_given_grad",
     .statistics = 8 | 16 | 32,
     .kernel = "batchnorm_ranks",
     .help = "the gradient of x, with the sums of all ranks",
     .args = {{.name = "x"},
              {.name = "dy"},
              {.name = "scale"},
              {.name = "mean"},
              {.name = "inverse"},
              {.name = "all"}},
     .shape = shape_same,
     .flops = flops_norm,
     .apart = 3,
     .inplace = 3,
     .flags = OP_HIDDEN | OP_HALF | OP_HOST,
     .batch = batch_never},
    {0},
};
