/* Reductions over axes, and the running sum.
 *
 * The user names axes; the kernel gets them as bits. Sums are blocked and pairwise, in an order
 * that follows from the dims alone (runtime/c/reduce.h). */
#include "frontend/ops/rules.h"

/* Dims without the axes of `bits`, or with 1 in their place. */
static int reduced_dims(const View *view, uint32_t bits, bool keep, int64_t *dim)
{
    int rank = 0;
    for (int i = 0; i < view->rank; i++)
        if (!(bits >> i & 1))
            dim[rank++] = view->dim[i];
        else if (keep)
            dim[rank++] = 1;
    return rank;
}

static bool reduce_to(Graph *g, Call *c, Dtype dtype)
{
    View view = call_view(g, c, 0);
    uint32_t bits;
    if (!axes_bits(g, c, "axis", view.rank, &bits))
        return false;
    call_set(c, "axes", bits);
    int64_t dim[MAX_RANK];
    int rank = reduced_dims(&view, bits, call_int(c, "keepdims"), dim);
    return call_output(g, c, dtype, rank, dim);
}

static bool want_number(Graph *g, const Call *c, Dtype dtype)
{
    if (dtype == F16 || dtype == BF16)
        return want_f32(g, c, 0);
    return true;
}

/* bool and u8 count in i32, so that a sum of comparisons is a count. */
static bool shape_sum(Graph *g, Call *c)
{
    Dtype dtype = call_dtype(g, c, 0);
    return want_number(g, c, dtype) && reduce_to(g, c, dtype == BOOL || dtype == U8 ? I32 : dtype);
}

static bool shape_mean(Graph *g, Call *c)
{
    return want_number(g, c, call_dtype(g, c, 0)) && reduce_to(g, c, F32);
}

static bool shape_extreme(Graph *g, Call *c)
{
    Dtype dtype = call_dtype(g, c, 0);
    return want_number(g, c, dtype) && reduce_to(g, c, dtype);
}

static int64_t reduced_count(const View *view, uint32_t bits)
{
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count *= bits >> i & 1 ? view->dim[i] : 1;
    return count;
}

static bool shape_var(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    if (!want_f32(g, c, 0) || !reduce_to(g, c, F32))
        return false;
    int64_t count = reduced_count(&view, (uint32_t)call_int(c, "axes"));
    int64_t correction = call_int(c, "correction");
    if (correction < 0 || correction >= count)
        return call_error(g, c,
                          "correction = %lld must be 0 or more, and less than the %lld elements",
                          (long long)correction, (long long)count);
    return true;
}

static bool shape_arg(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    if (!want_number(g, c, call_dtype(g, c, 0)) || !reduce_to(g, c, I32))
        return false;
    int64_t count = reduced_count(&view, (uint32_t)call_int(c, "axes"));
    if (count > INT32_MAX)
        return call_error(g, c, "an index into %lld elements does not fit in i32",
                          (long long)count);
    return true;
}

static bool shape_cumsum(Graph *g, Call *c)
{
    View view = call_view(g, c, 0);
    Dtype dtype = call_dtype(g, c, 0);
    int axis;
    if (dtype != F32 && dtype != I32 && dtype != I64)
        return want_f32(g, c, 0);
    if (!call_axis(g, c, "axis", view.rank, &axis))
        return false;
    call_set(c, "axis", axis);
    return call_output(g, c, dtype, view.rank, view.dim);
}

/* ---- Gradients ------------------------------------------------------------------------------ */

/* What was reduced, under the dims of x again: a view that repeats it. */
static Use spread(const Grad *grad, Use use)
{
    const Graph *g = grad->g;
    View x = use_view(g, grad_operand(grad, 0)), from = use_view(g, use), out = {.rank = x.rank};
    int64_t bits = node_attr(g, grad->node, "axes")->list[0];
    bool keep = from.rank == x.rank;
    for (int i = 0, k = 0; i < x.rank; i++) {
        out.dim[i] = x.dim[i];
        if (bits >> i & 1)
            k += keep;
        else
            out.stride[i] = from.stride[k++];
    }
    out.offset = from.offset;
    return use_make(grad->g, use.value, out);
}

static double reduced(const Grad *grad)
{
    View x = use_view(grad->g, grad_operand(grad, 0));
    return (double)reduced_count(&x, (uint32_t)node_attr(grad->g, grad->node, "axes")->list[0]);
}

static Use scaled(Grad *grad, Use use, double factor)
{
    return grad_op(grad, "mul", 2, (Use[]){use, graph_literal(grad->g, factor, F32)});
}

static bool grad_sum(Grad *grad)
{
    grad->din[0] = spread(grad, grad->dout[0]);
    return true;
}

static bool grad_mean(Grad *grad)
{
    Use share = scaled(grad, grad->dout[0], 1 / reduced(grad));
    if (share.value == NONE)
        return false;
    grad->din[0] = spread(grad, share);
    return true;
}

/* Those that are equal to the result share its gradient. */
static bool grad_extreme(Grad *grad)
{
    Graph *g = grad->g;
    Use x = grad_operand(grad, 0), y = spread(grad, grad_result(grad, 0));
    Use same = grad_op(grad, "equal", 2, (Use[]){x, y});
    Call count = call_begin(g, &grad->at, "mean");
    call_set_list(&count, "axis", 0, NULL);
    View view = use_view(g, x);
    int64_t bits = node_attr(g, grad->node, "axes")->list[0], axis[MAX_RANK];
    int axes = 0;
    for (int i = 0; i < view.rank; i++)
        if (bits >> i & 1)
            axis[axes++] = i;
    if (same.value == NONE)
        return false;
    if (axes == 0) { /* nothing was reduced */
        grad->din[0] = grad->dout[0];
        return true;
    }
    call_set_list(&count, "axis", axes, axis);
    call_set(&count, "keepdims", 1);
    call_use(g, &count, same);
    if (!call_finish(g, &count))
        return false;
    Use dy = spread(grad, grad->dout[0]);
    Use share =
        grad_op(grad, "div", 2, (Use[]){dy, scaled(grad, count.result.at[0], reduced(grad))});
    Use zero = graph_literal(g, 0, F32);
    grad->din[0] = grad_op(grad, "where", 3, (Use[]){same, share, zero});
    return grad->din[0].value != NONE;
}

static bool grad_prod(Grad *grad)
{
    Call c = call_begin(grad->g, &grad->at, "prod_grad");
    call_set(&c, "axes", node_attr(grad->g, grad->node, "axes")->number);
    call_use(grad->g, &c, grad_operand(grad, 0));
    call_use(grad->g, &c, spread(grad, grad->dout[0]));
    if (!call_finish(grad->g, &c))
        return false;
    grad->din[0] = c.result.at[0];
    return true;
}

static bool shape_prod_grad(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    return call_output(g, c, F32, x.rank, x.dim);
}

/* 2 (x - mean(x)) dy / (count - correction) */
static bool grad_var(Grad *grad)
{
    Graph *g = grad->g;
    Use x = grad_operand(grad, 0);
    View view = use_view(g, x);
    int64_t bits = node_attr(g, grad->node, "axes")->list[0], axis[MAX_RANK];
    double left = reduced(grad) - node_attr(g, grad->node, "correction")->number;
    int axes = 0;
    for (int i = 0; i < view.rank; i++)
        if (bits >> i & 1)
            axis[axes++] = i;
    if (axes == 0)
        return true; /* the variance of one number is 0 whatever it is */
    Call mean = call_begin(g, &grad->at, "mean");
    call_set_list(&mean, "axis", axes, axis);
    call_set(&mean, "keepdims", 1);
    call_use(g, &mean, x);
    if (!call_finish(g, &mean))
        return false;
    Use off = grad_op(grad, "sub", 2, (Use[]){x, mean.result.at[0]});
    Use part = grad_op(grad, "mul", 2, (Use[]){off, spread(grad, grad->dout[0])});
    grad->din[0] = scaled(grad, part, 2 / left);
    return grad->din[0].value != NONE;
}

/* cumsum over the flipped axis. */
static bool grad_cumsum(Grad *grad)
{
    Graph *g = grad->g;
    Call c = call_begin(g, &grad->at, "cumsum");
    call_set(&c, "axis", node_attr(g, grad->node, "axis")->number);
    call_set(&c, "exclusive", node_attr(g, grad->node, "exclusive")->number);
    call_set(&c, "reverse", node_attr(g, grad->node, "reverse")->number == 0);
    call_use(g, &c, grad->dout[0]);
    if (!call_finish(g, &c))
        return false;
    grad->din[0] = c.result.at[0];
    return true;
}

static double flops_one(const Graph *g, Id node)
{
    return flops_of(g, node, 1);
}

static double flops_var(const Graph *g, Id node)
{
    return flops_of(g, node, 4);
}

#define REDUCE_X                                      \
    {                                                 \
        .name = "x", .help = "any shape, any strides" \
    }
#define REDUCE_AXIS                                                              \
    {                                                                            \
        .name = "axis", .kind = ARG_INTS, .flags = ARG_FRONT, .count = MAX_RANK, \
        .fallback = "all", .words = "all",                                       \
        .help = "one axis or a list; negative ones count from the end"           \
    }
#define REDUCE_KEEPDIMS                                                                \
    {                                                                                  \
        .name = "keepdims", .kind = ARG_BOOL, .flags = ARG_FRONT, .fallback = "false", \
        .help = "leave 1 in place of each reduced axis"                                \
    }
#define REDUCE_AXES                                                            \
    {                                                                          \
        .name = "axes", .kind = ARG_INT, .flags = ARG_HIDDEN, .fallback = "0", \
        .help = "bit i: axis i is reduced"                                     \
    }
#define REDUCE_ARGS                                         \
    {                                                       \
        REDUCE_X, REDUCE_AXIS, REDUCE_KEEPDIMS, REDUCE_AXES \
    }

/* ---- The batch ------------------------------------------------------------------------------ */

static int64_t reduced_axes(const Graph *g, const Node *n)
{
    return g->attr.at[n->attr + (Id)op_arg(n->op, "axes")].list[0];
}

/* Axes that are not reduced move up, unless a 1 keeps the place of each that is. */
static int batch_reduce(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    int64_t bits = reduced_axes(g, n);
    bool keep = g->value.at[n->value].rank == use_view(g, node_use(g, n, 0)).rank;
    int gone = 0;
    for (int i = 0; i < axis && !keep; i++)
        gone += bits >> i & 1;
    return bits >> axis & 1 ? BATCH_ONE : axis - gone;
}

static int batch_sum(const Graph *g, const Node *n, int operand, int axis, int output)
{
    int to = batch_reduce(g, n, operand, axis, output);
    return to == BATCH_ONE ? BATCH_SUMMED : to;
}

static int batch_cumsum(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return batch_beside(g, n, "axis", axis);
}

static int batch_prod_grad(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return reduced_axes(g, n) >> axis & 1 ? BATCH_MIXED : axis;
}

const OpRow ops_reduce[] = {
    {.name = "sum",
     .precision = PRECISION_WIDE,
     .kernel = "reduce",
     .help = "sum over axes; pairwise, in one fixed order. bool and u8 are counted in i32",
     .args = REDUCE_ARGS,
     .shape = shape_sum,
     .grad = grad_sum,
     .flops = flops_one,
     .flags = OP_ASIDE | OP_HALF,
     .strided = 1,
     .batch = batch_sum,
     .as_metric = "valid_sum"},
    {.name = "mean",
     .precision = PRECISION_WIDE,
     .kernel = "reduce",
     .help = "mean over axes, f32 for every dtype (of bool: the share that is true)",
     .args = REDUCE_ARGS,
     .shape = shape_mean,
     .grad = grad_mean,
     .flops = flops_one,
     .flags = OP_HALF,
     .strided = 1,
     .batch = batch_reduce,
     .as_loss = "loss_mean",
     .as_metric = "loss_mean"},
    {.name = "prod",
     .precision = PRECISION_WIDE,
     .kernel = "reduce",
     .help = "product over axes",
     .args = REDUCE_ARGS,
     .shape = shape_sum,
     .grad = grad_prod,
     .flops = flops_one,
     .flags = OP_HALF,
     .strided = 1,
     .batch = batch_reduce},
    {.name = "max",
     .kernel = "reduce",
     .elementwise = "maximum",
     .help = "largest over axes (of bool: any); NaN where there is one. Elementwise: maximum(a, b)",
     .args = REDUCE_ARGS,
     .shape = shape_extreme,
     .grad = grad_extreme,
     .flops = flops_one,
     .flags = OP_HALF,
     .strided = 1,
     .batch = batch_reduce},
    {.name = "min",
     .kernel = "reduce",
     .elementwise = "minimum",
     .help = "smallest over axes (of bool: all); NaN where there is one. "
             "Elementwise: minimum(a, b)",
     .args = REDUCE_ARGS,
     .shape = shape_extreme,
     .grad = grad_extreme,
     .flops = flops_one,
     .flags = OP_HALF,
     .strided = 1,
     .batch = batch_reduce},
    {.name = "var",
     .precision = PRECISION_WIDE,
     .kernel = "reduce",
     .help = "variance over axes, in two passes: squares of x - mean, over count - correction",
     .args = {REDUCE_X,
              REDUCE_AXIS,
              REDUCE_KEEPDIMS,
              {.name = "correction",
               .kind = ARG_INT,
               .fallback = "0",
               .help = "0: of the whole, 1: estimated from a sample"},
              REDUCE_AXES},
     .shape = shape_var,
     .grad = grad_var,
     .flops = flops_var,
     .flags = OP_HALF,
     .strided = 1,
     .batch = batch_reduce},
    {.name = "argmax",
     .kernel = "argmax",
     .help = "i32 index of the first largest; over several axes it counts in their order",
     .args = REDUCE_ARGS,
     .shape = shape_arg,
     .flops = flops_one,
     .flags = OP_BEST | OP_HALF,
     .strided = 1,
     .batch = batch_reduce},
    {.name = "argmin",
     .kernel = "argmax",
     .help = "i32 index of the first smallest; over several axes it counts in their order",
     .args = REDUCE_ARGS,
     .shape = shape_arg,
     .flops = flops_one,
     .flags = OP_HALF,
     .strided = 1,
     .batch = batch_reduce},
    {.name = "cumsum",
     .precision = PRECISION_WIDE,
     .help = "running sum along an axis, summed in double; same shape",
     .args = {{.name = "x", .help = "f32, i32 or i64"},
              {.name = "axis", .kind = ARG_INT, .fallback = "-1", .help = "which"},
              {.name = "exclusive",
               .kind = ARG_BOOL,
               .fallback = "false",
               .help = "without the element itself"},
              {.name = "reverse", .kind = ARG_BOOL, .fallback = "false", .help = "from the end"}},
     .shape = shape_cumsum,
     .grad = grad_cumsum,
     .flops = flops_one,
     .flags = OP_HALF,
     .inplace = 1,
     .batch = batch_cumsum},
    {.name = "prod_grad",
     .args = {{.name = "x"}, {.name = "dy"}, REDUCE_AXES},
     .statistics = 2,
     .shape = shape_prod_grad,
     .strided = 3,
     .flags = OP_HIDDEN | OP_HALF,
     .batch = batch_prod_grad},
    {0},
};
