/* Losses, element by element from their definitions; then one number of them. */
#include "tests/ops/cases.h"

#include <math.h>

static Tensor reduce(const Case *c, Tensor each, double count)
{
    if (case_is_word(c, "reduction", "none"))
        return each;
    Tensor y = case_new(c, F32, 0, NULL);
    for (int64_t i = 0; i < each.count; i++)
        y.at[0] += each.at[i];
    if (!case_is_word(c, "reduction", "sum"))
        y.at[0] /= count;
    return y;
}

/* ---- Class ids ------------------------------------------------------------------------------- */

static bool ignored(const Case *c, double id)
{
    return c->setting[op_arg(c->call->op, "ignore_index")].given &&
           id == (double)case_int(c, "ignore_index");
}

static double row_cross_entropy(const Case *c, const double *x, int64_t n, int64_t id)
{
    double total = 0, smooth = case_number(c, "label_smoothing"), loss = 0;
    for (int64_t i = 0; i < n; i++)
        total += exp(x[i]);
    for (int64_t i = 0; i < n; i++) {
        double target = smooth / (double)n + (i == id ? 1 - smooth : 0);
        loss -= target * (x[i] - log(total));
    }
    return loss;
}

static double row_nll(const Case *c, const double *x, int64_t n, int64_t id)
{
    (void)c, (void)n;
    return -x[id];
}

static Tensor by_class(const Case *c, double (*f)(const Case *, const double *, int64_t, int64_t))
{
    const Tensor *x = &c->in[0], *ids = &c->in[1];
    int64_t n = x->dim[x->rank - 1];
    double counted = 0;
    Tensor each = case_new(c, F32, ids->rank, ids->dim);
    for (int64_t row = 0; row < ids->count; row++)
        if (!ignored(c, ids->at[row])) {
            each.at[row] = f(c, x->at + row * n, n, (int64_t)ids->at[row]);
            counted++;
        }
    return reduce(c, each, counted);
}

static Tensor cross_entropy(const Case *c)
{
    return by_class(c, row_cross_entropy);
}

static Tensor nll(const Case *c)
{
    return by_class(c, row_nll);
}

/* ---- A tensor and its target ----------------------------------------------------------------- */

/* The element of y that stands against element i of x: axes match from the last. */
static double against(const Tensor *x, const Tensor *y, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = x->rank; d-- > 0; i /= x->dim[d]) {
        int own = d - (x->rank - y->rank);
        if (own < 0)
            break;
        at += y->dim[own] == 1 ? 0 : i % x->dim[d] * step;
        step *= y->dim[own];
    }
    return y->at[at];
}

static Tensor by_element(const Case *c, double (*f)(const Case *, double, double))
{
    Tensor each = case_like(c, 0);
    for (int64_t i = 0; i < each.count; i++)
        each.at[i] = f(c, c->in[0].at[i], against(&each, &c->in[1], i));
    return reduce(c, each, (double)each.count);
}

static double one_mse(const Case *c, double x, double y)
{
    (void)c;
    return (x - y) * (x - y);
}

static double one_l1(const Case *c, double x, double y)
{
    (void)c;
    return fabs(x - y);
}

static double one_huber(const Case *c, double x, double y)
{
    double delta = case_number(c, "delta"), off = fabs(x - y);
    return off <= delta ? 0.5 * off * off : delta * (off - 0.5 * delta);
}

static double one_bce(const Case *c, double x, double y)
{
    (void)c;
    return -(y * fmax(log(x), -100) + (1 - y) * fmax(log(1 - x), -100));
}

static double one_bce_with_logits(const Case *c, double x, double y)
{
    (void)c;
    return x > 0 ? x - x * y + log1p(exp(-x)) : log1p(exp(x)) - x * y;
}

static double one_kl_div(const Case *c, double x, double y)
{
    (void)c;
    return y > 0 ? y * (log(y) - x) : 0;
}

static Tensor mse(const Case *c)
{
    return by_element(c, one_mse);
}

static Tensor l1(const Case *c)
{
    return by_element(c, one_l1);
}

static Tensor huber(const Case *c)
{
    return by_element(c, one_huber);
}

static Tensor bce(const Case *c)
{
    return by_element(c, one_bce);
}

static Tensor bce_with_logits(const Case *c)
{
    return by_element(c, one_bce_with_logits);
}

static Tensor kl_div(const Case *c)
{
    Tensor y = by_element(c, one_kl_div);
    if (case_is_word(c, "reduction", "batchmean")) /* of all elements so far */
        y.at[0] *= (double)c->in[0].count / (double)c->in[0].dim[0];
    return y;
}

/* Of x @ w: [rows, C] and [C, V]. */
static Tensor linear_cross_entropy(const Case *c)
{
    Tensor x = c->in[0], w = c->in[1], ids = c->in[2], y = case_new(c, F32, ids.rank, ids.dim);
    int64_t inner = w.dim[0], classes = w.dim[1];
    double smooth = case_number(c, "label_smoothing");
    for (int64_t r = 0; r < y.count; r++) {
        Tensor logits = case_new(c, F32, 1, &classes);
        double sum = 0, mean = 0;
        for (int64_t v = 0; v < classes; v++) {
            for (int64_t k = 0; k < inner; k++)
                logits.at[v] += x.at[r * inner + k] * w.at[k * classes + v];
            sum += exp(logits.at[v]);
            mean += logits.at[v] / (double)classes;
        }
        y.at[r] = log(sum) - (1 - smooth) * logits.at[(int64_t)ids.at[r]] - smooth * mean;
    }
    return y;
}

/* dw added to its sum; totals are as they are given. */
static Tensor linear_cross_entropy_accumulate(const Case *c)
{
    const double *x = c->in[0].at, *w = c->in[1].at, *total = c->in[3].at;
    int64_t inner = c->in[1].dim[0], classes = c->in[1].dim[1];
    bool begins = case_int(c, "begins"), turned = case_int(c, "turned");
    Tensor y = case_like(c, 5);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = begins ? 0 : c->in[5].at[i];
    for (int64_t r = 0; r < c->in[2].count; r++)
        for (int64_t v = 0; v < classes; v++) {
            double logit = 0;
            for (int64_t k = 0; k < inner; k++)
                logit += x[r * inner + k] * w[k * classes + v];
            double target = c->in[2].at[r] == (double)v;
            double slope = c->in[4].at[r] * (exp(logit - total[2 * r]) / total[2 * r + 1] - target);
            for (int64_t k = 0; k < inner; k++)
                y.at[turned ? v * inner + k : k * classes + v] += slope * x[r * inner + k];
        }
    return y;
}

OP_CASES(loss) = {
    {"cross_entropy", "f32[3, 5] i32[3]:0..4", "", cross_entropy},
    {"cross_entropy", "bf16[3, 5] i32[3]:0..4", "", cross_entropy},
    {"cross_entropy", "f16[3, 5] i32[3]:0..4", "", cross_entropy},
    {"cross_entropy", "f32[2, 3, 700] i64[2, 3]:0..699", "", cross_entropy},
    {"cross_entropy", "f32[5] i32[]:0..4", "", cross_entropy},
    {"cross_entropy", "f32[4, 1] i32[4]:0..0", "reduction = sum", cross_entropy},
    {"linear_cross_entropy", "f32[6, 5] f32[5, 7] i32[6]:0..6", "", linear_cross_entropy},
    {"linear_cross_entropy", "f32[2, 3, 4] f32[4, 300] i64[2, 3]:0..299", "label_smoothing = 0.1",
     linear_cross_entropy},
    {"linear_cross_entropy", "f32[1, 1] f32[1, 1] i32[1]:0..0", "", linear_cross_entropy},
    {"linear_cross_entropy_accumulate",
     "f32[6, 5] f32[5, 7] i32[6]:0..6 f32[6, 2]:9..12 f32[6] f32[5, 7]", "",
     linear_cross_entropy_accumulate, .output = 1},
    {"linear_cross_entropy_accumulate",
     "f32[6, 5] f32[5, 7] i32[6]:0..6 f32[6, 2]:9..12 f32[6] f32[7, 5]",
     "turned = true, begins = true", linear_cross_entropy_accumulate, .output = 1},
    {"cross_entropy", "f32[7, 5] i32[7]:0..4", "label_smoothing = 0.1", cross_entropy},
    {"cross_entropy", "f32[7, 5]:50..60 i32[7]:0..4", "reduction = none", cross_entropy},
    {"cross_entropy", "f32[40, 3] i32[40]:-1..2", "ignore_index = -1", cross_entropy},
    {"cross_entropy", "f32[40, 3] i32[40]:0..2", "ignore_index = 1, reduction = sum",
     cross_entropy},
    {"cross_entropy", "f32[9, 3] i64[9]:-1..2",
     "ignore_index = -1, reduction = none, label_smoothing = 0.2", cross_entropy},
    {"nll", "f32[3, 5]:-3..0 i32[3]:0..4", "", nll},
    {"nll", "f32[2, 3, 5]:-3..0 i64[2, 3]:0..4", "reduction = none", nll},
    {"nll", "f32[30, 5]:-3..0 i32[30]:-1..4", "ignore_index = -1", nll},
    {"mse", "f32[3, 5] f32[3, 5]", "", mse},
    {"mse", "f32[] f32[]", "", mse},
    {"mse", "f32[3, 5] f32[3, 5]", "reduction = sum", mse},
    {"l1", "f32[3, 5, 2] f32[3, 5, 2]", "", l1},
    {"l1", "f32[3, 5] f32[3, 5]", "reduction = none", l1},
    {"mse", "f32[3, 5] f32[5]", "", mse},
    {"mse", "f32[3, 5] f32[]", "", mse},
    {"l1", "f32[3, 5, 2] f32[3, 1, 2]", "reduction = sum", l1},
    {"huber", "f32[3, 5] f32[3, 1]", "reduction = none", huber},
    {"bce_with_logits", "f32[3, 5] f32[3, 1]:0..1", "", bce_with_logits},
    {"huber", "f32[3, 5] f32[3, 5]", "", huber},
    {"huber", "f32[3, 5] f32[3, 5]", "delta = 0.3, reduction = none", huber},
    {"bce", "f32[3, 5]:0.01..0.99 f32[3, 5]:0..1", "", bce},
    {"bce", "f32[6]:0.02..0.03 f32[6]:0..1", "reduction = none", bce},
    {"bce_with_logits", "f32[3, 5]:-50..50 f32[3, 5]:0..1", "", bce_with_logits},
    {"bce_with_logits", "f32[30] f32[30]:0..1", "reduction = none", bce_with_logits},
    {"kl_div", "f32[3, 5]:-4..0 f32[3, 5]:0..1", "", kl_div},
    {"kl_div", "f32[3, 5]:-4..0 f32[3, 5]:0..1", "reduction = batchmean", kl_div},
    {"kl_div", "f32[4]:-4..0 f32[4]:0.1..0.2", "reduction = none", kl_div},
    {0},
};

OP_ERRORS(loss) = {
    {"cross_entropy", "f32[3, 5] i32[4]", "", "do not match: f32[3, 5] and i32[4]"},
    {"cross_entropy", "f32[3, 5] f32[3]", "", "indices must be i32 or i64, not f32[3]"},
    {"cross_entropy", "f32[3, 5] i32[3]", "label_smoothing = 2", "must be in [0, 1]"},
    {"nll", "f32[3, 5] i32[3, 5]", "", "log_probs [..., classes] and ids [...] do not match"},
    {"mse", "f32[3, 1] f32[3]", "",
     "target f32[3] does not broadcast to f32[3, 1], the shape of x"},
    {"l1", "f32[3] f32[2, 3]", "", "target f32[2, 3] does not broadcast to f32[3]"},
    {"mse", "f32[3] i32[3]", "", "takes f32, not i32[3]"},
    {"huber", "f32[3] f32[3]", "delta = 0", "delta = 0 must be positive"},
    {0},
};
