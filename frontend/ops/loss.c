/* Losses. Those of class ids have a kernel that gives one loss for each row; the others are
 * elementwise. What comes out is reduced to one number, unless the user wants all of them. */
#include "frontend/ops/rules.h"

#include <string.h>

enum { REDUCE_MEAN, REDUCE_SUM, REDUCE_NONE, REDUCE_BATCHMEAN };

static Use number(Graph *g, double x)
{
    return graph_literal(g, x, F32);
}

static Use op1(Graph *g, const Call *c, const char *op, Use a)
{
    return call_op(g, c, op, 1, &a);
}

static Use op2(Graph *g, const Call *c, const char *op, Use a, Use b)
{
    return call_op(g, c, op, 2, (Use[]){a, b});
}

/* Leaves the loss of each element, or their mean or sum, as the result. */
static bool reduce_losses(Graph *g, Call *c, Use losses)
{
    if (losses.value == NONE)
        return false;
    int how = (int)call_attr(c, "reduction")->number;
    if (how == REDUCE_MEAN) {
        losses = op1(g, c, "loss_mean", losses);
    } else if (how == REDUCE_SUM) {
        losses = op1(g, c, "sum", losses);
    } else if (how == REDUCE_BATCHMEAN) {
        View view = use_view(g, losses);
        double batch = view.rank ? (double)view.dim[0] : 1;
        losses = op2(g, c, "mul", op1(g, c, "sum", losses), number(g, 1 / batch));
    }
    call_result(g, c, losses);
    return losses.value != NONE;
}

/* ---- Class ids ------------------------------------------------------------------------------- */

static bool check_classes(Graph *g, const Call *c)
{
    View scores = call_view(g, c, 0), ids = call_view(g, c, 1);
    if (!want_f32(g, c, 0) || !want_index(g, c, 1))
        return false;
    bool fits =
        scores.rank == ids.rank + 1 && memcmp(scores.dim, ids.dim, ids.rank * sizeof *ids.dim) == 0;
    return fits || call_error_at(
                       g, c, 1, "shapes of %s [..., classes] and ids [...] do not match: %s and %s",
                       c->op->args[0].name, use_text(g, call_operand(c, 0)),
                       use_text(g, call_operand(c, 1)));
}

/* Losses of the kernel `rows`; their mean is over the rows that are not ignored. */
static bool finish_classes(Graph *g, Call *c, Call *rows)
{
    const Attr *ignored = call_attr(c, "ignore_index");
    call_set(rows, "ignore", ignored->given);
    call_set(rows, "ignored", ignored->number);
    call_use(g, rows, call_operand(c, 0));
    call_use(g, rows, call_operand(c, 1));
    if (!call_finish(g, rows))
        return false;
    Use losses = rows->result.at[0];
    if (!ignored->given || call_attr(c, "reduction")->number != REDUCE_MEAN)
        return reduce_losses(g, c, losses);
    Use id = graph_literal(g, ignored->number, call_dtype(g, c, 1));
    Use skipped = op1(g, c, "mean", op2(g, c, "equal", call_operand(c, 1), id));
    Use counted = op2(g, c, "sub", number(g, 1), skipped);
    call_result(g, c, op2(g, c, "div", op1(g, c, "mean", losses), counted));
    return c->result.at[0].value != NONE;
}

static bool build_cross_entropy(Graph *g, Call *c)
{
    double smoothing = call_attr(c, "label_smoothing")->number;
    if (!check_classes(g, c))
        return false;
    if (!(smoothing >= 0 && smoothing <= 1))
        return call_error(g, c, "label_smoothing = %g must be in [0, 1]", smoothing);
    Call rows = call_begin(g, c, "cross_entropy_rows");
    call_set(&rows, "label_smoothing", smoothing);
    return finish_classes(g, c, &rows);
}

static bool build_nll(Graph *g, Call *c)
{
    Call rows = call_begin(g, c, "nll_rows");
    return check_classes(g, c) && finish_classes(g, c, &rows);
}

/* The mean that training takes: a sum of shares, which knows of micro-batches and of samples that
 * do not count (runtime/c/loss.h). */
static bool build_weighed(Graph *g, Call *c, const char *op)
{
    View view = call_view(g, c, 0);
    int64_t rows = view.rank ? view.dim[0] : 1;
    Call share = call_begin(g, c, op);
    call_set(&share, "rows", (double)rows);
    call_set(&share, "each", (double)(view_count(&view) / rows));
    call_use(g, &share, call_operand(c, 0));
    if (!call_finish(g, &share))
        return false;
    call_result(g, c, op1(g, c, "sum", share.result.at[0]));
    return c->result.at[0].value != NONE;
}

static bool build_loss_mean(Graph *g, Call *c)
{
    return build_weighed(g, c, "loss_weight");
}

/* The sum of a metric, of samples that count. */
static bool build_valid_sum(Graph *g, Call *c)
{
    return build_weighed(g, c, "valid_part");
}

/* A loss for each id; and two numbers that its gradient needs. */
static bool shape_losses(Graph *g, Call *c, View ids)
{
    bool good = call_output(g, c, F32, ids.rank, ids.dim);
    ids.dim[ids.rank] = 2;
    return good && call_output(g, c, F32, ids.rank + 1, ids.dim);
}

static bool shape_cross_entropy_rows(Graph *g, Call *c)
{
    return shape_losses(g, c, call_view(g, c, 1));
}

static bool shape_nll_rows(Graph *g, Call *c)
{
    View ids = call_view(g, c, 1);
    return call_output(g, c, F32, ids.rank, ids.dim);
}

/* The settings of the kernel that a gradient shares with its op. */
static void copy_setting(const Grad *grad, Call *c, const char *setting)
{
    c->attr[op_arg(c->op, setting)] = *node_attr(grad->g, grad->node, setting);
}

static bool grad_cross_entropy_rows(Grad *grad)
{
    Graph *g = grad->g;
    Call c = call_begin(g, &grad->at, "cross_entropy_rows_grad");
    copy_setting(grad, &c, "label_smoothing");
    copy_setting(grad, &c, "ignore");
    copy_setting(grad, &c, "ignored");
    Use operand[4] = {grad_operand(grad, 0), grad_operand(grad, 1), grad_result(grad, 1),
                      grad->dout[0]};
    for (int i = 0; i < 4; i++)
        call_use(g, &c, operand[i]);
    if (!call_finish(g, &c))
        return false;
    grad->din[0] = c.result.at[0];
    return true;
}

/* The same of a product that is never stored whole: see frontend/chunked_loss.c. */
static bool shape_linear_cross_entropy(Graph *g, Call *c)
{
    View ids = call_view(g, c, 2);
    return shape_losses(g, c, ids) && call_output(g, c, I32, ids.rank, ids.dim);
}

static bool shape_linear_cross_entropy_grad(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), w = call_view(g, c, 1);
    int64_t turned[2] = {w.dim[1], w.dim[0]};
    return call_output(g, c, F32, x.rank, x.dim) &&
           call_output(g, c, F32, 2, call_int(c, "turned") ? turned : w.dim);
}

/* dw has the layout of w, also where that is a table transposed; over micro-batches it is added to
 * the sum of what they make, slice by slice. */
static bool grad_linear_cross_entropy(Grad *grad)
{
    Graph *g = grad->g;
    Use w = grad_operand(grad, 1), sum = {NONE, NONE};
    const Value value = g->value.at[w.value];
    View view = use_view(g, w);
    bool turned = view.dim[0] > 1 && view.dim[1] > 1 && view.stride[0] < view.stride[1];
    bool whole = value.rank == 2 && view_count(&view) == value_count(&value) &&
                 value.dim[0] == view.dim[turned] && view.stride[!turned] == 1;
    if (whole && grad->wanted[1])
        sum = grad_flow(grad, 1);
    bool kept = grad_is_kept(g, sum);
    Call c = call_begin(g, &grad->at,
                        kept ? "linear_cross_entropy_accumulate" : "linear_cross_entropy_grad");
    copy_setting(grad, &c, "label_smoothing");
    copy_setting(grad, &c, "ignore");
    copy_setting(grad, &c, "ignored");
    call_set(&c, "turned", turned);
    if (kept)
        call_set(&c, "begins", grad_begins(g, sum));
    Use operand[] = {grad_operand(grad, 0), w,  grad_operand(grad, 2), grad_result(grad, 1),
                     grad->dout[0],         sum};
    for (int i = 0; i < (kept ? 6 : 5); i++)
        call_use(g, &c, operand[i]);
    if (!call_finish(g, &c))
        return false;
    grad->din[0] = c.result.at[0];
    if (kept)
        grad_set_flow(grad, 1, c.result.at[1]);
    else
        grad->din[1] = turned ? use_permute(g, c.result.at[1], (int[]){1, 0}) : c.result.at[1];
    return true;
}

static double flops_linear_cross_entropy(const Graph *g, Id node)
{
    View w = use_view(g, node_use(g, &g->node.at[node], 1));
    View ids = use_view(g, node_use(g, &g->node.at[node], 2));
    return 2.0 * (double)view_count(&ids) * (double)view_count(&w);
}

static double flops_linear_cross_entropy_grad(const Graph *g, Id node)
{
    return 3 * flops_linear_cross_entropy(g, node); /* the logits again, dx and dw */
}

static bool grad_nll_rows(Grad *grad)
{
    Graph *g = grad->g;
    const Dtype log_probs = (Dtype)g->value.at[grad_operand(grad, 0).value].dtype;
    View x = use_view(g, grad_operand(grad, 0));
    Call c = call_begin(g, &grad->at, "nll_rows_grad");
    copy_setting(grad, &c, "ignore");
    copy_setting(grad, &c, "ignored");
    call_set(&c, "classes", (double)x.dim[x.rank - 1]);
    call_set(&c, "dtype", precision_takes_half(g, c.op) ? log_probs : F32);
    call_use(g, &c, grad_operand(grad, 1));
    call_use(g, &c, grad->dout[0]);
    if (!call_finish(g, &c))
        return false;
    grad->din[0] = c.result.at[0];
    return true;
}

static bool shape_like_logits(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    return call_output(g, c, F32, x.rank, x.dim);
}

static bool shape_nll_grad(Graph *g, Call *c)
{
    View ids = call_view(g, c, 0);
    ids.dim[ids.rank] = call_int(c, "classes");
    return call_output(g, c, (Dtype)call_int(c, "dtype"), ids.rank + 1, ids.dim);
}

static double flops_rows(const Graph *g, Id node)
{
    return flops_of(g, node, 4);
}

/* ---- A tensor and its target ----------------------------------------------------------------- */

/* The target may be repeated, x may not: a loss of [N, 1] against [N] is a mistake, not a wish. */
static bool check_pair(Graph *g, const Call *c)
{
    View x = call_view(g, c, 0), y = call_view(g, c, 1);
    if (!want_f32(g, c, 0) || !want_f32(g, c, 1))
        return false;
    int64_t joined[MAX_RANK];
    if (dims_broadcast(x.rank, x.dim, y.rank, y.dim, joined) == x.rank &&
        memcmp(x.dim, joined, x.rank * sizeof *x.dim) == 0)
        return true;
    return call_error_at(g, c, 1, "%s %s does not broadcast to %s, the shape of %s",
                         c->op->args[1].name, use_text(g, call_operand(c, 1)),
                         use_text(g, call_operand(c, 0)), c->op->args[0].name);
}

static bool build_mse(Graph *g, Call *c)
{
    if (!check_pair(g, c))
        return false;
    Use off = op2(g, c, "sub", call_operand(c, 0), call_operand(c, 1));
    return reduce_losses(g, c, op1(g, c, "square", off));
}

static bool build_l1(Graph *g, Call *c)
{
    if (!check_pair(g, c))
        return false;
    Use off = op2(g, c, "sub", call_operand(c, 0), call_operand(c, 1));
    return reduce_losses(g, c, op1(g, c, "abs", off));
}

/* With m = min(|x - y|, delta): m * (|x - y| - m / 2). */
static bool build_huber(Graph *g, Call *c)
{
    double delta = call_attr(c, "delta")->number;
    if (!check_pair(g, c))
        return false;
    if (!(delta > 0))
        return call_error(g, c, "delta = %g must be positive", delta);
    Use off = op2(g, c, "sub", call_operand(c, 0), call_operand(c, 1));
    Use size = op1(g, c, "abs", off);
    Use near = op2(g, c, "minimum", size, number(g, delta));
    Use rest = op2(g, c, "sub", size, op2(g, c, "mul", near, number(g, 0.5)));
    return reduce_losses(g, c, op2(g, c, "mul", near, rest));
}

/* A loss of each pair by an elementwise op. */
static bool build_each(Graph *g, Call *c, const char *op)
{
    return check_pair(g, c) &&
           reduce_losses(g, c, op2(g, c, op, call_operand(c, 0), call_operand(c, 1)));
}

static bool build_bce(Graph *g, Call *c)
{
    return build_each(g, c, "bce_each");
}

static bool build_bce_with_logits(Graph *g, Call *c)
{
    return build_each(g, c, "bce_with_logits_each");
}

static bool build_kl_div(Graph *g, Call *c)
{
    return build_each(g, c, "kl_div_each");
}

/* Rows of x with what there is for each of them; the weight is of no sample. */
static int batch_linear_cross_entropy(const Graph *g, const Node *n, int operand, int axis,
                                      int output)
{
    return operand == 1 ? BATCH_MIXED : batch_rows(g, n, operand, axis, output);
}

/* Its gradient is the sum over all of them. */
static int batch_linear_cross_entropy_grad(const Graph *g, const Node *n, int operand, int axis,
                                           int output)
{
    int to = batch_linear_cross_entropy(g, n, operand, axis, output);
    return to != BATCH_MIXED && output == 1 ? BATCH_SUMMED : to;
}

#define REDUCTION(WORDS, HELP)                                                         \
    {                                                                                  \
        .name = "reduction", .kind = ARG_WORD, .flags = ARG_FRONT, .fallback = "mean", \
        .words = (WORDS), .help = (HELP)                                               \
    }
#define MEAN_SUM_NONE REDUCTION("mean sum none", "to a number, or none: a loss for each")
#define IDS                                                                   \
    {                                                                         \
        .name = "ids", .help = "i32 or i64[...]: the right class of each row" \
    }
#define IGNORE_INDEX                                                                          \
    {                                                                                         \
        .name = "ignore_index", .kind = ARG_INT, .flags = ARG_FRONT, .fallback = "-1",        \
        .help = "where given: rows with this id have no loss and are not counted in the mean" \
    }
#define IGNORE                                                                                     \
    {.name = "ignore",                                                                             \
     .kind = ARG_BOOL,                                                                             \
     .flags = ARG_HIDDEN,                                                                          \
     .fallback = "false",                                                                          \
     .help = "whether there is an id to ignore"},                                                  \
    {                                                                                              \
        .name = "ignored", .kind = ARG_INT, .flags = ARG_HIDDEN, .fallback = "-1", .help = "which" \
    }
#define TURNED                                                                        \
    {                                                                                 \
        .name = "turned", .kind = ARG_BOOL, .flags = ARG_HIDDEN, .fallback = "false", \
        .help = "dw is [V, C]: w is such a table transposed"                          \
    }
#define PAIR(X_HELP, Y_HELP)               \
    {.name = "x", .help = (X_HELP)},       \
    {                                      \
        .name = "target", .help = (Y_HELP) \
    }

const OpRow ops_loss[] = {
    {.name = "cross_entropy",
     .help = "-log(softmax(logits)[id]) for each row of [..., classes]",
     .args = {{.name = "logits", .help = "f32[..., classes]"},
              IDS,
              {.name = "label_smoothing",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "0",
               .help = "share of the target that is spread over all classes"},
              IGNORE_INDEX,
              MEAN_SUM_NONE},
     .build = build_cross_entropy},
    {.name = "cross_entropy_rows",
     .precision = PRECISION_WIDE,
     .kernel = "cross_entropy",
     .help = "the kernel of cross_entropy: a loss for each row, its largest logit and the sum of "
             "exponentials below that",
     .args = {{.name = "logits"},
              {.name = "ids"},
              {.name = "label_smoothing", .kind = ARG_FLOAT, .fallback = "0"},
              IGNORE},
     .chunked = "linear_cross_entropy",
     .shape = shape_cross_entropy_rows,
     .grad = grad_cross_entropy_rows,
     .flops = flops_rows,
     .flags = OP_HIDDEN | OP_CLASSES | OP_LOOKS_UP | OP_HALF,
     .batch = batch_rows},
    {.name = "nll",
     .help = "-log_probs[id] for each row of [..., classes], as log_softmax gives them",
     .args = {{.name = "log_probs", .help = "f32[..., classes]"}, IDS, IGNORE_INDEX, MEAN_SUM_NONE},
     .build = build_nll},
    {.name = "nll_rows",
     .precision = PRECISION_WIDE,
     .kernel = "cross_entropy",
     .help = "the kernel of nll: a loss for each row",
     .args = {{.name = "log_probs"}, {.name = "ids"}, IGNORE},
     .shape = shape_nll_rows,
     .grad = grad_nll_rows,
     .flags = OP_HIDDEN | OP_CLASSES | OP_LOOKS_UP | OP_HALF,
     .batch = batch_rows},
    {.name = "mse",
     .precision = PRECISION_WIDE,
     .help = "(x - target)^2",
     .args = {PAIR("f32", "broadcasts to the shape of x"), MEAN_SUM_NONE},
     .build = build_mse},
    {.name = "l1",
     .precision = PRECISION_WIDE,
     .help = "|x - target|",
     .args = {PAIR("f32", "broadcasts to the shape of x"), MEAN_SUM_NONE},
     .build = build_l1},
    {.name = "huber",
     .precision = PRECISION_WIDE,
     .help = "half the square of x - target up to delta, from there a straight line",
     .args = {PAIR("f32", "broadcasts to the shape of x"),
              {.name = "delta",
               .kind = ARG_FLOAT,
               .flags = ARG_FRONT,
               .fallback = "1",
               .help = "where the line begins"},
              MEAN_SUM_NONE},
     .build = build_huber},
    {.name = "bce",
     .precision = PRECISION_WIDE,
     .help = "-(target * log(x) + (1 - target) * log(1 - x)), with logarithms of -100 or more",
     .args = {PAIR("f32 probabilities", "broadcasts to the shape of x; from 0 to 1"),
              MEAN_SUM_NONE},
     .build = build_bce},
    {.name = "bce_with_logits",
     .precision = PRECISION_WIDE,
     .help = "bce of sigmoid(x), without overflow",
     .args = {PAIR("f32 logits", "broadcasts to the shape of x; from 0 to 1"), MEAN_SUM_NONE},
     .build = build_bce_with_logits},
    {.name = "kl_div",
     .precision = PRECISION_WIDE,
     .help = "target * (log(target) - x): the divergence of exp(x) from target",
     .args = {PAIR("f32 logarithms of probabilities",
                   "f32 probabilities; broadcasts to the shape of x"),
              REDUCTION("mean sum none batchmean",
                        "mean is over all elements; batchmean: the sum over the size of axis 0")},
     .build = build_kl_div},
    {.name = "cross_entropy_rows_grad",
     .statistics = 4 | 8,
     .kernel = "cross_entropy",
     .args = {{.name = "logits"},
              {.name = "ids"},
              {.name = "totals"},
              {.name = "dy"},
              {.name = "label_smoothing", .kind = ARG_FLOAT, .fallback = "0"},
              IGNORE},
     .shape = shape_like_logits,
     .flops = flops_rows,
     .inplace = 1,
     .flags = OP_HIDDEN | OP_LOOKS_UP | OP_HALF,
     .batch = batch_rows},
    {.name = "linear_cross_entropy",
     .precision = PRECISION_NARROW,
     .wide_out = 7,
     .help = "cross_entropy_rows of x @ w, in chunks of rows",
     .args = {{.name = "x"},
              {.name = "w"},
              {.name = "ids"},
              {.name = "label_smoothing", .kind = ARG_FLOAT, .fallback = "0"},
              IGNORE},
     .shape = shape_linear_cross_entropy,
     .grad = grad_linear_cross_entropy,
     .flops = flops_linear_cross_entropy,
     .strided = 2,
     .flags = OP_HIDDEN | OP_LOOKS_UP | OP_CHUNKED | OP_HALF,
     .batch = batch_linear_cross_entropy},
    {.name = "linear_cross_entropy_grad",
     .precision = PRECISION_NARROW,
     .statistics = 8 | 16,
     .wide_out = 2,
     .kernel = "linear_cross_entropy",
     .args = {{.name = "x"},
              {.name = "w"},
              {.name = "ids"},
              {.name = "totals"},
              {.name = "dy"},
              {.name = "label_smoothing", .kind = ARG_FLOAT, .fallback = "0"},
              IGNORE,
              TURNED},
     .shape = shape_linear_cross_entropy_grad,
     .flops = flops_linear_cross_entropy_grad,
     .strided = 2,
     .flags = OP_HIDDEN | OP_LOOKS_UP | OP_HALF,
     .batch = batch_linear_cross_entropy_grad},
    {.name = "linear_cross_entropy_accumulate",
     .precision = PRECISION_NARROW,
     .statistics = 8 | 16 | 32,
     .wide_out = 2,
     .kernel = "linear_cross_entropy",
     .help = "the same, with dw added to its sum over micro-batches, which the first may begin",
     .args = {{.name = "x"},
              {.name = "w"},
              {.name = "ids"},
              {.name = "totals"},
              {.name = "dy"},
              {.name = "sum"},
              {.name = "label_smoothing", .kind = ARG_FLOAT, .fallback = "0"},
              IGNORE,
              TURNED,
              {.name = "begins", .kind = ARG_BOOL, .fallback = "false"}},
     .shape = shape_linear_cross_entropy_grad,
     .flops = flops_linear_cross_entropy_grad,
     .strided = 2,
     .updates = {0, 6},
     .flags = OP_EFFECT | OP_HIDDEN | OP_LOOKS_UP | OP_HALF,
     .batch = batch_never},
    {.name = "nll_rows_grad",
     .statistics = 2,
     .kernel = "cross_entropy",
     .args = {{.name = "ids"},
              {.name = "dy"},
              IGNORE,
              {.name = "classes", .kind = ARG_INT, .flags = ARG_FRONT},
              {.name = "dtype", .kind = ARG_INT, .flags = ARG_FRONT}},
     .shape = shape_nll_grad,
     .flags = OP_HIDDEN | OP_LOOKS_UP | OP_HALF,
     .batch = batch_each},
    /* Logarithms stop at -100, so that a certain and wrong answer has a finite loss; and its slope
     * is that of a probability of 1e-12. */
    {.name = "bce_each",
     .precision = PRECISION_WIDE,
     .expr = "-(b * gp_bounded_log(a) + (1 - b) * gp_bounded_log_rest(a))",
     .dexpr = {"dy * (a - b) / ((1 - a) * a < (gp_real)1e-12 ? (gp_real)1e-12 : (1 - a) * a)",
               "dy * (gp_bounded_log_rest(a) - gp_bounded_log(a))"},
     .args = {{.name = "x"}, {.name = "target"}},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_HIDDEN,
     .batch = batch_each},
    {.name = "bce_with_logits_each",
     .precision = PRECISION_WIDE,
     .expr = "gp_logit_loss(a, b)",
     .dexpr = {"dy * (gp_sigmoid(a) - b)", "-dy * a"},
     .args = {{.name = "x"}, {.name = "target"}},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_HIDDEN,
     .batch = batch_each},
    /* The logarithm of a target of 0 is not needed: it is multiplied by 0. */
    {.name = "kl_div_each",
     .precision = PRECISION_WIDE,
     .expr = "b == 0 ? 0 : b * (gp_log(b) - a)",
     .dexpr = {"-dy * b", "dy * (gp_log(b) + 1 - a)"},
     .args = {{.name = "x"}, {.name = "target"}},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_HIDDEN,
     .batch = batch_each},
    {.name = "loss_mean", .args = {{.name = "x"}}, .build = build_loss_mean, .flags = OP_HIDDEN},
    {.name = "valid_sum", .args = {{.name = "x"}}, .build = build_valid_sum, .flags = OP_HIDDEN},
    {.name = "valid_part",
     .precision = PRECISION_WIDE,
     .kernel = "loss",
     .expr = "gp_loss_weight(run, i, rows, each) > 0 ? a : 0",
     .dexpr = {"gp_loss_weight(run, i, rows, each) > 0 ? dy : 0"},
     .args = {{.name = "x"},
              {.name = "rows", .kind = ARG_INT, .flags = ARG_BATCH},
              {.name = "each", .kind = ARG_INT}},
     .flags = OP_ELEMENTWISE | OP_RANDOM | OP_FLOAT | OP_HIDDEN | OP_WEIGHS,
     .batch = batch_first},
    {.name = "loss_weight",
     .precision = PRECISION_WIDE,
     .kernel = "loss",
     .expr = "a * gp_loss_weight(run, i, rows, each)",
     .dexpr = {"dy * gp_loss_weight(run, i, rows, each)"},
     .args = {{.name = "x"},
              {.name = "rows", .kind = ARG_INT, .flags = ARG_BATCH},
              {.name = "each", .kind = ARG_INT}},
     .flags = OP_ELEMENTWISE | OP_RANDOM | OP_FLOAT | OP_HIDDEN | OP_WEIGHS,
     .batch = batch_first},
    {0},
};
