/* Normalisations.
 *
 * layernorm and rmsnorm are kernels over rows of the last axes. groupnorm and instancenorm are
 * the same kernel without scale and bias on another shape, and an elementwise tail; batchnorm
 * when inferring is elementwise altogether, so that it fuses with its neighbours. */
#include "frontend/ops/rules.h"

#include <string.h>

/* ---- Rows of the last axes ------------------------------------------------------------------ */

static bool check_axes(Graph *g, const Call *c, const View *view)
{
    int64_t axes = call_int(c, "axes");
    if (axes >= 1 && axes <= view->rank)
        return true;
    return call_error_at(g, c, 0, "axes = %lld: cannot normalize so many of the last axes of x %s",
                         (long long)axes, use_text(g, call_operand(c, 0)));
}

static bool params_rows(Graph *g, Call *c)
{
    if (!call_has(c, 0))
        return true; /* which is reported */
    View view = call_view(g, c, 0);
    if (!check_axes(g, c, &view))
        return false;
    int axes = (int)call_int(c, "axes");
    const int64_t *dim = view.dim + view.rank - axes;
    if (!call_has(c, 1) && !call_param(g, c, "scale", init_const(1), axes, dim))
        return false;
    return op_arg(c->op, "bias") < 0 || call_has(c, 2) ||
           call_param(g, c, "bias", init_const(0), axes, dim);
}

/* Operand i has the dims of the last `axes` axes of x. */
static bool check_row_operand(Graph *g, const Call *c, int i, const View *x, int axes)
{
    View view = call_view(g, c, i);
    const int64_t *dim = x->dim + x->rank - axes;
    if (!want_f32(g, c, i))
        return false;
    if (view.rank == axes && memcmp(view.dim, dim, (size_t)axes * sizeof *dim) == 0)
        return true;
    return call_error_at(g, c, i, "%s must be %s, as the last axes of x %s, but is %s",
                         c->op->args[i].name, shape_text(g->arena, F32, axes, dim),
                         use_text(g, call_operand(c, 0)), use_text(g, call_operand(c, i)));
}

static bool check_eps(Graph *g, const Call *c)
{
    double eps = call_attr(c, "eps")->number;
    return eps >= 0 || call_error(g, c, "eps = %g must not be negative", eps);
}

/* x, scale and bias as far as the row has them; then the statistics of each row of x. */
static bool shape_rows(Graph *g, Call *c, int statistics)
{
    View view = call_view(g, c, 0);
    if (!want_f32(g, c, 0) || !check_axes(g, c, &view) || !check_eps(g, c))
        return false;
    int axes = (int)call_int(c, "axes");
    for (int i = 1; call_has(c, i); i++)
        if (!check_row_operand(g, c, i, &view, axes))
            return false;
    bool good = call_output(g, c, F32, view.rank, view.dim);
    for (int i = 0; i < statistics; i++)
        good = good && call_output(g, c, F32, view.rank - axes, view.dim);
    return good;
}

static bool shape_layernorm(Graph *g, Call *c)
{
    return shape_rows(g, c, 2);
}

static bool shape_rmsnorm(Graph *g, Call *c)
{
    return shape_rows(g, c, 1);
}

/* Of rows: x, then scale and bias as far as the row has them. Without these the result says as much
 * as x, and others need it: then x need not be kept. */
static bool grad_rows(Grad *grad)
{
    Graph *g = grad->g;
    const Node node = g->node.at[grad->node];
    const bool centre = node.values == 3, made = node.uses == 1;
    Call c = call_begin(g, &grad->at, "norm_grad");
    call_set(&c, "axes", node_attr(g, grad->node, "axes")->number);
    call_set(&c, "centre", centre);
    call_set(&c, "made", made);
    call_use(g, &c, made ? grad_result(grad, 0) : grad_operand(grad, 0));
    call_use(g, &c, grad->dout[0]);
    call_use(g, &c, made ? (Use){NONE, NONE} : grad_operand(grad, 1));
    call_use(g, &c, centre && !made ? grad_result(grad, 1) : (Use){NONE, NONE});
    call_use(g, &c, grad_result(grad, centre ? 2 : 1));
    if (!call_finish(g, &c))
        return false;
    for (Id i = 0; i < node.uses; i++)
        grad->din[i] = c.result.at[i];
    return true;
}

/* Each row of the last axes separately; scale and bias belong to no row. */
static int batch_norm(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)output;
    int rows = use_view(g, node_use(g, n, 0)).rank -
               (int)g->attr.at[n->attr + (Id)op_arg(n->op, "axes")].list[0];
    return operand == 0 && axis < rows ? axis : BATCH_MIXED;
}

static double flops_norm(const Graph *g, Id node)
{
    return flops_of(g, node, 8);
}

/* ---- Channels: axis 1 of [N, C, ...] --------------------------------------------------------- */

static bool check_channels(Graph *g, const Call *c)
{
    View view = call_view(g, c, 0);
    if (view.rank >= 2)
        return true;
    return call_error_at(g, c, 0, "x must be [N, C, ...] with the channels on axis 1, not %s",
                         use_text(g, call_operand(c, 0)));
}

static bool params_channels(Graph *g, Call *c)
{
    if (!call_has(c, 0))
        return true;
    if (!check_channels(g, c))
        return false;
    int64_t channels = call_view(g, c, 0).dim[1];
    return (call_has(c, 1) || call_param(g, c, "scale", init_const(1), 1, &channels)) &&
           (call_has(c, 2) || call_param(g, c, "bias", init_const(0), 1, &channels));
}

static bool check_vectors(Graph *g, const Call *c)
{
    int64_t channels = call_view(g, c, 0).dim[1];
    if (!want_f32(g, c, 0) || !check_eps(g, c))
        return false;
    for (int i = 1; call_has(c, i); i++) {
        View view = call_view(g, c, i);
        if (!want_f32(g, c, i))
            return false;
        if (view.rank != 1 || view.dim[0] != channels)
            return call_error_at(g, c, i,
                                 "%s must be f32[%lld], one for each channel of x %s, but is %s",
                                 c->op->args[i].name, (long long)channels,
                                 use_text(g, call_operand(c, 0)), use_text(g, call_operand(c, i)));
    }
    return true;
}

/* x * scale + bias, channel by channel. */
static Use scale_and_shift(Graph *g, const Call *c, Use x, Use scale, Use bias)
{
    int rank = use_view(g, x).rank;
    Use scaled = call_op(g, c, "mul", 2, (Use[]){x, use_along(g, scale, 1, rank)});
    return call_op(g, c, "add", 2, (Use[]){scaled, use_along(g, bias, 1, rank)});
}

/* Groups of channels are normalised as rows of [N, groups, C / groups * ...]. */
static bool build_groups(Graph *g, Call *c, int64_t groups)
{
    View view = call_view(g, c, 0);
    int64_t rows[3] = {view.dim[0], groups, view_count(&view) / view.dim[0] / groups};
    Call normalize = call_begin(g, c, "normalize");
    call_set(&normalize, "eps", call_attr(c, "eps")->number);
    Use x = use_reshape(g, c, call_operand(c, 0), 3, rows);
    if (x.value == NONE)
        return false;
    call_use(g, &normalize, x);
    if (!call_finish(g, &normalize))
        return false;
    Use y = use_reshape(g, c, normalize.result.at[0], view.rank, view.dim);
    Use out = scale_and_shift(g, c, y, call_operand(c, 1), call_operand(c, 2));
    call_result(g, c, out);
    return out.value != NONE;
}

static bool build_groupnorm(Graph *g, Call *c)
{
    int64_t groups = call_int(c, "groups"), channels = call_view(g, c, 0).dim[1];
    if (!check_vectors(g, c))
        return false;
    if (groups < 1 || channels % groups != 0)
        return call_error(g, c, "groups = %lld does not divide the %lld channels of x %s",
                          (long long)groups, (long long)channels, use_text(g, call_operand(c, 0)));
    return build_groups(g, c, groups);
}

static bool build_instancenorm(Graph *g, Call *c)
{
    return check_vectors(g, c) && build_groups(g, c, call_view(g, c, 0).dim[1]);
}

static bool params_batchnorm(Graph *g, Call *c)
{
    if (!params_channels(g, c))
        return false;
    if (!call_has(c, 0))
        return true;
    int64_t channels = call_view(g, c, 0).dim[1];
    return (call_has(c, 3) || call_state(g, c, "mean", init_const(0), F32, 1, &channels)) &&
           (call_has(c, 4) || call_state(g, c, "var", init_const(1), F32, 1, &channels));
}

/* A step changes its running statistics, so they are whole tensors that are kept, one for each. */
static bool check_running(Graph *g, const Call *c)
{
    for (int i = 3; i < 5; i++) {
        Use use = call_operand(c, i);
        const Value *value = &g->value.at[use.value];
        if ((value->kind == VALUE_PARAM || value->kind == VALUE_STATE) && use.view == NONE)
            continue;
        call_error_at(g, c, i, "the running %s cannot be updated in %s", c->op->args[i].name,
                      value->kind == VALUE_CONST   ? "a const"
                      : value->kind == VALUE_INPUT ? "an input"
                      : value->kind != VALUE_PARAM ? "a result"
                                                   : "a part of a param");
        diag_hint(g->diag, "declare a param for it, or leave it out");
        return false;
    }
    if (call_operand(c, 3).value != call_operand(c, 4).value)
        return true;
    call_error_at(g, c, 4, "running mean and var must be different tensors");
    diag_hint(g->diag, "declare a param for each of them, or leave both out");
    return false;
}

enum { OVER_BATCH, OVER_MICRO, OVER_RANK };

/* Elements of a channel. */
static double count_of(const Graph *g, const Call *c)
{
    const View x = call_view(g, c, 0);
    return (double)(view_count(&x) / x.dim[1]);
}

/* Whether the batch is that of several ranks, each of which has its part at once. */
static bool is_over_ranks(const Graph *g, const Call *c)
{
    return call_attr(c, "over")->number == OVER_BATCH && g->ranks.count && !g->ranks.here &&
           g->ranks.turns == 1;
}

/* What is at hand: the whole batch, a micro-batch, or a rank's part where that is no more. */
static bool normalize_over_batch(Graph *g, Call *c, Use *made)
{
    const int over = (int)call_attr(c, "over")->number;
    const bool part = over == OVER_RANK && g->ranks.count && g->ranks.turns == 1;
    Call norm = call_begin(g, c, "batchnorm_train");
    call_set(&norm, "eps", call_attr(c, "eps")->number);
    call_set(&norm, "over", over == OVER_MICRO || part);
    for (int i = 0; i < 3; i++)
        call_use(g, &norm, call_operand(c, i));
    if (!call_finish(g, &norm))
        return false;
    for (int i = 0; i < 3; i++)
        made[i] = norm.result.at[i];
    return true;
}

static bool normalize_over_ranks(Graph *g, Call *c, Use *made)
{
    const Use x = call_operand(c, 0), part = call_op(g, c, "batchnorm_part", 1, &x);
    const Use all = part.value == NONE ? part : ranks_rows(g, c, part);
    Call merge = call_begin(g, c, "batchnorm_merge");
    if (all.value == NONE)
        return false;
    call_set(&merge, "eps", call_attr(c, "eps")->number);
    call_use(g, &merge, all);
    if (!call_finish(g, &merge))
        return false;
    made[1] = merge.result.at[0];
    made[2] = merge.result.at[1];
    Use operand[5] = {x, call_operand(c, 1), call_operand(c, 2), made[1], made[2]};
    made[0] = call_op(g, c, "batchnorm_given", 5, operand);
    return made[0].value != NONE;
}

/* Training takes the statistics of the batch; the running ones move towards them when the step is
 * sure to succeed: see updates.c. */
static bool build_batchnorm_train(Graph *g, Call *c)
{
    if (!check_running(g, c))
        return false;
    Call *running = ARENA_NEW(g->arena, Call);
    *running = call_begin(g, c, "running_stats");
    const bool shared = is_over_ranks(g, c);
    Use made[3]; /* the result, mean and inverse standard deviation */
    if (!(shared ? normalize_over_ranks(g, c, made) : normalize_over_batch(g, c, made)))
        return false;
    running->alike = shared;
    call_set(running, "eps", call_attr(c, "eps")->number);
    call_set(running, "momentum", call_attr(c, "momentum")->number);
    call_set(running, "count", count_of(g, c) * (shared ? g->ranks.count : 1));
    Use operand[4] = {call_operand(c, 3), call_operand(c, 4), made[1], made[2]};
    for (int i = 0; i < 4; i++)
        call_use(g, running, operand[i]);
    ARRAY_PUSH(g->arena, &g->staged, running);
    call_result(g, c, made[0]);
    return true;
}

/* (x - mean) * (scale / sqrt(var + eps)) + bias: the factor is worked out once for a channel. Of 16
 * bits, computed in f32 and rounded once, as in training. */
static bool build_batchnorm(Graph *g, Call *c)
{
    if (!check_vectors(g, c))
        return false;
    if (g->training)
        return build_batchnorm_train(g, c);
    const Dtype dtype = precision_of(g, c);
    Use x = dtype == F32 ? call_operand(c, 0) : precision_cast(g, c, call_operand(c, 0), F32);
    Use eps = graph_literal(g, call_attr(c, "eps")->number, F32);
    Use spread = call_op(g, c, "add", 2, (Use[]){call_operand(c, 4), eps});
    Use inverse = call_op(g, c, "rsqrt", 1, &spread);
    Use factor = call_op(g, c, "mul", 2, (Use[]){call_operand(c, 1), inverse});
    Use mean = use_along(g, call_operand(c, 3), 1, call_view(g, c, 0).rank);
    Use centred = call_op(g, c, "sub", 2, (Use[]){x, mean});
    Use out = factor.value == NONE || centred.value == NONE
                  ? (Use){NONE, NONE}
                  : scale_and_shift(g, c, centred, factor, call_operand(c, 2));
    if (out.value != NONE && dtype != F32)
        out = precision_cast(g, c, out, dtype);
    call_result(g, c, out);
    return out.value != NONE;
}

#define EPS                                                                                   \
    {                                                                                         \
        .name = "eps", .kind = ARG_FLOAT, .fallback = "1e-5", .help = "added to the variance" \
    }
#define EPS_FRONT                                                                 \
    {                                                                             \
        .name = "eps", .kind = ARG_FLOAT, .flags = ARG_FRONT, .fallback = "1e-5", \
        .help = "added to the variance"                                           \
    }
#define AXES                                                                                  \
    {                                                                                         \
        .name = "axes", .kind = ARG_INT, .fallback = "1", .help = "how many of the last axes" \
    }
#define SCALE                                                                             \
    {                                                                                     \
        .name = "scale", .flags = ARG_PARAM, .help = "ones at first", .foreign = "weight" \
    }
#define BIAS                                                                            \
    {                                                                                   \
        .name = "bias", .flags = ARG_PARAM, .help = "zeros at first", .foreign = "bias" \
    }
#define CHANNELS_X                            \
    {                                         \
        .name = "x", .help = "f32[N, C, ...]" \
    }

const OpRow ops_norm[] = {
    {.name = "layernorm",
     .wide_out = 6,
     .help = "(x - mean) / sqrt(var + eps) * scale + bias over the last axes; same shape. "
             "scale and bias have the dims of those axes",
     .args = {{.name = "x", .help = "f32"}, SCALE, BIAS, AXES, EPS},
     .params = params_rows,
     .shape = shape_layernorm,
     .grad = grad_rows,
     .flops = flops_norm,
     .inplace = 1,
     .flags = OP_HALF | OP_AGAIN,
     .batch = batch_norm},
    {.name = "normalize",
     .wide_out = 6,
     .kernel = "layernorm",
     .help = "layernorm without scale and bias",
     .args = {{.name = "x"}, AXES, EPS},
     .shape = shape_layernorm,
     .grad = grad_rows,
     .flops = flops_norm,
     .flags = OP_HIDDEN | OP_HALF,
     .inplace = 1,
     .batch = batch_norm},
    {.name = "rmsnorm",
     .wide_out = 2,
     .kernel = "layernorm",
     .help = "x / sqrt(mean(x^2) + eps) * scale over the last axes; same shape",
     .args = {{.name = "x", .help = "f32"}, SCALE, AXES, EPS},
     .params = params_rows,
     .shape = shape_rmsnorm,
     .grad = grad_rows,
     .flops = flops_norm,
     .inplace = 1,
     .flags = OP_HALF | OP_AGAIN,
     .batch = batch_norm},
    {.name = "groupnorm",
     .help = "normalises each group of channels of each sample; scale, bias: [C]; same shape",
     .args = {CHANNELS_X,
              SCALE,
              BIAS,
              {.name = "groups",
               .kind = ARG_INT,
               .flags = ARG_FRONT,
               .fallback = "32",
               .help = "must divide the channels"},
              EPS_FRONT},
     .params = params_channels,
     .build = build_groupnorm},
    {.name = "instancenorm",
     .help = "normalises each channel of each sample; scale, bias: [C]; same shape",
     .args = {CHANNELS_X, SCALE, BIAS, EPS_FRONT},
     .params = params_channels,
     .build = build_instancenorm},
    {.name = "batchnorm",
     .help = "(x - mean) / sqrt(var + eps) * scale + bias for each channel; same shape. Inferring "
             "takes the running mean and var, which training keeps",
     .args = {CHANNELS_X,
              SCALE,
              BIAS,
              {.name = "mean",
               .flags = ARG_PARAM,
               .help = "running mean, zeros at first",
               .foreign = "running_mean"},
              {.name = "var",
               .flags = ARG_PARAM,
               .help = "running variance, ones at first",
               .foreign = "running_var"},
              EPS_FRONT,
              {.name = "momentum",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "0.1",
               .help = "share of a training step in the running statistics"},
              {.name = "over",
               .kind = ARG_WORD,
               .flags = ARG_FRONT,
               .fallback = "batch",
               .words = "batch micro rank",
               .help =
                   "what training takes statistics of: the whole batch, a micro-batch, or what a "
                   "rank has of it"}},
     .foreign_unused = "num_batches_tracked",
     .params = params_batchnorm,
     .build = build_batchnorm},
    {0},
};
