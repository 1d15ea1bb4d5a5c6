/* Hidden rows of normalisation: its training form and its gradients. */
#include "frontend/ops/rules.h"

/* dx like x; dscale and dbias like the last `axes` axes of it. */
static bool shape_norm_grad(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    int axes = (int)call_int(c, "axes");
    const int64_t *row = x.dim + x.rank - axes;
    return call_output(g, c, F32, x.rank, x.dim) && call_output(g, c, F32, axes, row) &&
           call_output(g, c, F32, axes, row);
}

/* Something like x, then two numbers for each channel. */
static bool shape_channels(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    return call_output(g, c, F32, x.rank, x.dim) && call_output(g, c, F32, 1, &x.dim[1]) &&
           call_output(g, c, F32, 1, &x.dim[1]);
}

/* Of a batch, or of several: a row for each, in the order in which they count. */
static bool shape_running(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), mean = call_view(g, c, 2), inverse = call_view(g, c, 3);
    if (x.rank != 1 || mean.rank < 1 || mean.rank > 2 || mean.rank != inverse.rank ||
        mean.dim[0] != inverse.dim[0] || mean.dim[mean.rank - 1] != x.dim[0] ||
        inverse.dim[mean.rank - 1] != x.dim[0])
        return call_error(g, c, "statistics do not fit those that they move");
    return call_output(g, c, F32, 1, x.dim) && call_output(g, c, F32, 1, x.dim);
}

/* dx, dscale and dbias from the statistics that the forward pass saved. */
static bool grad_batchnorm(Grad *grad)
{
    Call c = call_begin(grad->g, &grad->at, "batchnorm_grad");
    call_use(grad->g, &c, grad_operand(grad, 0));
    call_use(grad->g, &c, grad->dout[0]);
    call_use(grad->g, &c, grad_operand(grad, 1));
    call_use(grad->g, &c, grad_result(grad, 1));
    call_use(grad->g, &c, grad_result(grad, 2));
    if (!call_finish(grad->g, &c))
        return false;
    for (int i = 0; i < 3; i++)
        grad->din[i] = c.result.at[i];
    return true;
}

/* As the kernel has it: of 16 bits, computed in f32 and rounded once. */
static Use apply_batchnorm(Graph *g, const Call *from, Id id)
{
    const Node node = g->node.at[id];
    const Value made = g->value.at[node.value];
    const Use operand[] = {node_use(g, &node, 0), use_of(node_value(&node, 1)),
                           use_of(node_value(&node, 2)), node_use(g, &node, 1),
                           node_use(g, &node, 2)};
    Call c = call_begin(g, from, "batchnorm_each");
    for (int i = 0; i < 5; i++) {
        const Use wide = precision_cast(g, from, operand[i], F32);
        if (wide.value == NONE)
            return wide;
        call_use(g, &c, i ? use_along(g, wide, 1, made.rank) : wide);
    }
    return call_finish(g, &c) ? precision_cast(g, from, c.result.at[0], (Dtype)made.dtype)
                              : (Use){NONE, NONE};
}

static double flops_norm(const Graph *g, Id node)
{
    return flops_of(g, node, 12);
}

/* Each row separately; what scale and bias get is summed over the rows. */
static int batch_norm_grad(const Graph *g, const Node *n, int operand, int axis, int output)
{
    int rows = use_view(g, node_use(g, n, 0)).rank -
               (int)g->attr.at[n->attr + (Id)op_arg(n->op, "axes")].list[0];
    return operand == 2 || axis >= rows ? BATCH_MIXED : output > 0 ? BATCH_SUMMED : axis;
}

/* Each channel separately: axis 1 of images, the only one of vectors. */
static int batch_channels(const Graph *g, const Node *n, int operand, int axis, int output)
{
    int rank = use_view(g, node_use(g, n, (Id)operand)).rank;
    if (axis != (rank > 1))
        return BATCH_MIXED;
    return output == 0 ? 1 : 0;
}

/* So here, unless the model wants the statistics of each micro-batch. */
static int batch_statistics(const Graph *g, const Node *n, int operand, int axis, int output)
{
    bool micro = g->attr.at[n->attr + (Id)op_arg(n->op, "over")].number != 0;
    if (operand == 0 && axis != 1 && micro)
        return output == 0 ? axis : BATCH_OWN;
    return batch_channels(g, n, operand, axis, output);
}

const OpRow ops_norm_grad[] = {
    {.name = "norm_grad",
     .statistics = 8 | 16,
     .wide_out = 6,
     .help = "gradient of layernorm, normalize and rmsnorm",
     .args = {{.name = "x"},
              {.name = "dy"},
              {.name = "scale", .flags = ARG_OPTIONAL},
              {.name = "mean", .flags = ARG_OPTIONAL},
              {.name = "inverse"},
              {.name = "axes", .kind = ARG_INT, .help = "how many of the last axes make a row"},
              {.name = "centre",
               .kind = ARG_BOOL,
               .fallback = "true",
               .help = "whether the mean was taken off"},
              {.name = "made",
               .kind = ARG_BOOL,
               .fallback = "false",
               .help = "x is what was made of it, normalized"}},
     .shape = shape_norm_grad,
     .flops = flops_norm,
     .inplace = 3,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_norm_grad},
    {.name = "batchnorm_train",
     .wide_out = 6,
     .kernel = "batchnorm",
     .help = "batchnorm with the statistics of the batch, which it gives too",
     .args = {{.name = "x"},
              {.name = "scale"},
              {.name = "bias"},
              {.name = "eps", .kind = ARG_FLOAT},
              {.name = "over", .kind = ARG_BOOL, .flags = ARG_FRONT, .help = "what is at hand"}},
     .shape = shape_channels,
     .grad = grad_batchnorm,
     .apply = apply_batchnorm,
     .flops = flops_norm,
     .apart = 1,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_statistics,
     .batch_help = "over = micro takes the statistics of each micro-batch"},
    {.name = "batchnorm_each",
     .help = "what batchnorm_train makes, of its statistics",
     .expr = "(a - b) * (c * d) + e",
     .args = {{.name = "x"},
              {.name = "mean"},
              {.name = "inverse"},
              {.name = "scale"},
              {.name = "bias"}},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_HIDDEN,
     .batch = batch_each},
    {.name = "batchnorm_grad",
     .statistics = 8 | 16,
     .wide_out = 6,
     .kernel = "batchnorm",
     .args =
         {{.name = "x"}, {.name = "dy"}, {.name = "scale"}, {.name = "mean"}, {.name = "inverse"}},
     .shape = shape_channels,
     .flops = flops_norm,
     .apart = 3,
     .inplace = 3,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_channels},
    {.name = "running_stats",
     .precision = PRECISION_WIDE,
     .kernel = "batchnorm",
     .help = "the statistics that inference takes, moved towards those of a batch",
     .args = {{.name = "running_mean"},
              {.name = "running_var"},
              {.name = "mean"},
              {.name = "inverse"},
              {.name = "momentum", .kind = ARG_FLOAT},
              {.name = "eps", .kind = ARG_FLOAT},
              {.name = "count",
               .kind = ARG_FLOAT,
               .flags = ARG_BATCH,
               .help = "elements of a channel"}},
     .shape = shape_running,
     .updates = {1, 2},
     .flags = OP_HIDDEN | OP_EFFECT,
     .batch = batch_never},
    {0},
};
