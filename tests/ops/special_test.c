/* Ops at zeros, infinities, NaN and at numbers too large or too small for a careless formula.
 *
 * What is expected follows from the definition, or from its limit; where two slopes meet, it is
 * what PyTorch gives. */
#include "tests/ops/derived.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INF INFINITY

/* ---- A call with given operands, its results and its slopes ---------------------------------- */

typedef struct {
    Arena *arena;
    Derived derived;
    Run *run;
    bool with_slopes;
} Probe;

/* Operands that are given as NULL keep the numbers that a case has. */
static Probe probe(const char *op, const char *operands, const char *settings,
                   const double *const *at)
{
    Probe p = {.arena = arena_new()};
    OpCase *row = ARENA_NEW(p.arena, OpCase);
    const char *wrong = NULL;
    *row = (OpCase){.op = op, .operands = operands, .settings = settings};
    const OpRow *known = op_find(op);
    bool derived = known->build || known->grad || known->flags & OP_ELEMENTWISE;
    p.with_slopes = derived && case_derive(p.arena, row, &p.derived, &wrong);
    cr_assert(!wrong, "%s: %s", op, wrong);
    if (!p.with_slopes)
        p.derived.built = case_build(p.arena, row, PLAIN, -1, true);
    Built *b = &p.derived.built;
    cr_assert(!b->refused, "%s: %s", op, b->message);
    p.run = run_new(p.arena, b->graph);
    case_write(p.run, b);
    for (int i = 0; i < b->operands; i++)
        if (at[i]) {
            Tensor t = b->operand[i];
            memcpy(t.at, at[i], (size_t)t.count * sizeof *t.at);
            run_write(p.run, b->use[i].value, &t);
        }
    Id weights = graph_find(b->graph, "weights0");
    if (weights != NONE) { /* of the results in the loss: ones */
        const Value *value = &b->graph->value.at[weights];
        Tensor ones = tensor_new(p.arena, F32, value->rank, value->dim);
        for (int64_t i = 0; i < ones.count; i++)
            ones.at[i] = 1;
        run_write(p.run, weights, &ones);
    }
    cr_assert_eq(run_graph(p.run, &(RunOptions){.seed = 3}), GP_OK, "%s", op);
    return p;
}

static void probe_free(Probe *p)
{
    run_free(p->run);
    free(p->derived.built.message);
    arena_free(p->arena);
}

static Tensor result_of(const Probe *p, int i)
{
    return run_read(p->run, p->arena, p->derived.built.call.result.at[i]);
}

/* The gradient of the sum of all results by operand i. */
static Tensor slope_of(const Probe *p, int i)
{
    Use slope = p->derived.gradient[p->derived.built.use[i].value];
    if (slope.value != NONE)
        return run_read(p->run, p->arena, slope);
    Tensor zero = p->derived.built.operand[i];
    memset(zero.at, 0, (size_t)zero.count * sizeof *zero.at);
    return zero;
}

static bool is_near(double got, double want, double tolerance)
{
    return got == want || (isnan(got) && isnan(want)) ||
           (isfinite(want) && fabs(got - want) <= tolerance * fabs(want) + 1e-37);
}

static void expect(const char *what, const Tensor *got, const double *want, double tolerance)
{
    for (int64_t i = 0; i < got->count; i++)
        cr_expect(is_near(got->at[i], want[i], tolerance), "%s: number %lld is %.9g, expected %.9g",
                  what, (long long)i, got->at[i], want[i]);
}

/* ---- Elementwise ops ------------------------------------------------------------------------- */

typedef struct {
    const char *op;
    double a, b; /* b: ONLY where there is one operand */
    double value, by_a, by_b;
} Point;

#define ONLY 12345.0 /* no second operand */

static const Point places[] = {
    {"pow", 0, 0, 1, 0, 0},
    {"pow", 2, 0, 1, 0, 0.6931471805599453},
    {"pow", -2, 0, 1, 0, NAN},
    {"pow", INF, 0, 1, 0, INF},
    {"pow", 0, 1, 0, 1, 0},
    {"pow", 0, 2, 0, 0, 0},
    {"pow", 0, -1, INF, -INF, -INF},
    {"pow", -3, 2, 9, -6, NAN},
    {"pow", NAN, 2, NAN, NAN, NAN},
    {"maximum", 1, 1, 1, 0.5, 0.5},
    {"maximum", 1, 2, 2, 0, 1},
    {"maximum", INF, -INF, INF, 1, 0},
    {"maximum", NAN, 2, NAN, 1, 1},
    {"minimum", 1, 1, 1, 0.5, 0.5},
    {"minimum", 1, 2, 1, 1, 0},
    {"minimum", 1, NAN, NAN, 1, 1},
    {"div", 1, 0, INF, INF, -INF},
    {"div", 1, INF, 0, 0, 0},
    {"div", 1e30, 1e-30, INF, 1e30, -INF},
    {"mul", 0, INF, NAN, INF, 0},
    {"mod_real", -1, INF, INF, 1, 0},
    {"mod_real", 5, 0, NAN, 1, -INF},
    {"fmod_real", -5, INF, -5, 1, 0},
    {"fmod_real", NAN, 2, NAN, 1, NAN},
    {"asin", 1, ONLY, 1.5707963267948966, INF},
    {"asin", 2, ONLY, NAN, NAN},
    {"acos", -1, ONLY, 3.141592653589793, -INF},
    {"atan", -INF, ONLY, -1.5707963267948966, 0},
    {"sinh", 1e-20, ONLY, 1e-20, 1},
    {"sinh", -INF, ONLY, -INF, INF},
    {"cosh", INF, ONLY, INF, INF},
    {"asinh", 1e-20, ONLY, 1e-20, 1},
    {"asinh", -INF, ONLY, -INF, 0},
    {"acosh", 1, ONLY, 0, INF},
    {"acosh", 0.5, ONLY, NAN, NAN},
    {"atanh", 1, ONLY, INF, INF},
    {"atanh", 1e-20, ONLY, 1e-20, 1},
    {"relu", 0, ONLY, 0, 0},
    {"relu", INF, ONLY, INF, 1},
    {"relu", NAN, ONLY, NAN, 1},
    {"leaky_relu", 0, ONLY, 0, 0.01},
    {"leaky_relu", -INF, ONLY, -INF, 0.01},
    {"prelu_each", 0, 0.5, 0, 0.5, 0},
    {"prelu_each", 2, INF, 2, 1, 0},
    {"elu", -INF, ONLY, -1, 0},
    {"elu", -1e-7, ONLY, -1e-7, 1},
    {"silu", 1e30, ONLY, 1e30, 1},
    {"silu", -1e30, ONLY, 0, 0},
    {"gelu", 1e30, ONLY, 1e30, 1},
    {"gelu_tanh", 3e19, ONLY, 3e19, 1},
    {"gelu_tanh", -3e19, ONLY, 0, 0},
    {"mish", 1e30, ONLY, 1e30, 1},
    {"sigmoid", -1e30, ONLY, 0, 0},
    {"sigmoid", INF, ONLY, 1, 0},
    {"tanh", -INF, ONLY, -1, 0},
    {"tanh", 1e-40, ONLY, 1e-40, 1},
    {"softplus", 1e30, ONLY, 1e30, 1},
    {"softplus", -INF, ONLY, 0, 0},
    {"softplus", 100, ONLY, 100, 1},
    {"hardsigmoid", 3, ONLY, 1, 0},
    {"hardswish", 3, ONLY, 3, 1},
    {"hardswish", -3, ONLY, 0, 0},
    {"abs", 0, ONLY, 0, 0},
    {"abs", -INF, ONLY, INF, -1},
    {"abs", NAN, ONLY, NAN, NAN},
    {"sqrt", 0, ONLY, 0, INF},
    {"sqrt", 0x1p-134, ONLY, 0x1p-67, 0x1p66},
    {"sqrt", INF, ONLY, INF, 0},
    {"sqrt", -1, ONLY, NAN, NAN},
    {"rsqrt", 0, ONLY, INF, -INF},
    {"rsqrt", 1e38, ONLY, 1e-19, 0},
    {"reciprocal", 1e30, ONLY, 1e-30, 0},
    {"log", 0, ONLY, -INF, INF},
    {"log", 1e-40, ONLY, -92.10340371976183, INF},
    {"exp", 89, ONLY, INF, INF},
    {"exp", -104, ONLY, 0, 0},
    {"square", 1e20, ONLY, INF, 2e20},
    {"clip", NAN, ONLY, NAN, 1},
    {"clip", INF, ONLY, 1, 0},
    {"bce_with_logits", INF, 0, INF, 1, -INF},
    {"bce_with_logits", INF, 1, 0, 0, -INF},
    {"bce_with_logits", -INF, 0, 0, 0, INF},
    {"bce_with_logits", -INF, 1, INF, -1, INF},
    {"bce_with_logits", 1e30, 0, 1e30, 1, -1e30},
    {"bce_with_logits", 1e30, 1, 0, 0, -1e30},
    {"bce_with_logits", -1e30, 0.5, 5e29, -0.5, 1e30},
    {"bce_with_logits", 100, 0, 100, 1, -100},
    {"bce_with_logits", 20, 1, 2.061153620314381e-09, 0, -20},
    {"bce_with_logits", -20, 0, 2.061153620314381e-09, 2.061153618190204e-09, 20},
    {"bce_with_logits", NAN, 1, NAN, NAN, NAN},
    {"bce", 0, 0, 0, 0, 100},
    {"bce", 0, 1, 100, -1e12, 100},
    {"bce", 1, 0, 100, 1e12, -100},
    {"bce", 1e-40, 1, 92.10340371976183, -1e12, 92.10340371976183},
    {"bce", 1e-9, 0, 1e-9, 1, 20.72326583694641},
    {"kl_div", -INF, 0, 0, 0, NAN},
    {"kl_div", -3, 0, 0, 0, -INF},
    {"kl_div", -1, 1e-40, -9.110340371976183e-39, -1e-40, -90.10340371976183},
    {"huber", 1e30, 0, 1e30, 1, -1},
    {"huber", NAN, 0, NAN, NAN, NAN},
    {"mse", 1e20, 0, INF, 2e20, -2e20},
};

static bool is_loss(const char *op)
{
    return op_arg(op_find(op), "reduction") >= 0;
}

static const char *settings_of(const char *op)
{
    return is_loss(op) ? "reduction = none" : strcmp(op, "clip") == 0 ? "low = -1, high = 1" : "";
}

Test(special, elementwise_ops_have_their_limits)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const Point *at = &places[i];
        const bool two = at->b != ONLY;
        Probe p = probe(at->op, two ? "f32[1] f32[1]" : "f32[1]", settings_of(at->op),
                        (const double *const[]){&at->a, &at->b});
        Tensor y = result_of(&p, 0), by_a = slope_of(&p, 0);
        const char *what = arena_printf(p.arena, "%s(%g, %g)", at->op, at->a, two ? at->b : 0);
        expect(what, &y, &at->value, 2e-6);
        expect(arena_printf(p.arena, "%s by the first", what), &by_a, &at->by_a, 2e-6);
        if (two) {
            Tensor by_b = slope_of(&p, 1);
            expect(arena_printf(p.arena, "%s by the second", what), &by_b, &at->by_b, 2e-6);
        }
        probe_free(&p);
    }
}

/* ---- Softmax --------------------------------------------------------------------------------- */

enum { CLASSES = 3 };

static const double logits[][CLASSES] = {
    {1e20, 1e20, 1e20},      {1e4, 10001, 9998}, {1e6, 1000000.5, 999999},
    {-1e6, -1000001, -3e38}, {0, 1, 2},          {3e38, 0, -3e38},
};
enum { ROWS = sizeof logits / sizeof *logits };

static void softmax(const double *x, double *p)
{
    double most = fmax(fmax(x[0], x[1]), x[2]), sum = 0;
    for (int i = 0; i < CLASSES; i++)
        sum += p[i] = exp(x[i] - most);
    for (int i = 0; i < CLASSES; i++)
        p[i] /= sum;
}

/* Of a loss with the class 0: its share in the target is 1 - smooth + smooth / classes. */
static void class_slopes(const double *x, double smooth, double *to)
{
    softmax(x, to);
    for (int i = 0; i < CLASSES; i++)
        to[i] -= smooth / CLASSES + (i == 0 ? 1 - smooth : 0);
}

static void expect_small(const char *what, const Tensor *got, const double *want)
{
    for (int64_t i = 0; i < got->count; i++)
        cr_expect(fabs(got->at[i] - want[i]) <= 3e-7, "%s: number %lld is %.9g, expected %.9g",
                  what, (long long)i, got->at[i], want[i]);
}

Test(special, cross_entropy_of_large_logits_has_its_slopes)
{
    static const double zero = 0, one = 1, smooth[] = {0, 0.25};
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < 2; k++) {
            double want[CLASSES];
            class_slopes(logits[row], smooth[k], want);
            Arena *arena = arena_new();
            const char *setting = arena_printf(arena, "label_smoothing = %g", smooth[k]);
            Probe p = probe("cross_entropy", "f32[1, 3] i32[1]", setting,
                            (const double *const[]){logits[row], &zero});
            Tensor got = slope_of(&p, 0);
            expect_small("cross_entropy", &got, want);
            probe_free(&p);
            p = probe("linear_cross_entropy", "f32[1, 1] f32[1, 3] i32[1]", setting,
                      (const double *const[]){&one, logits[row], &zero});
            got = slope_of(&p, 1);
            expect_small("linear_cross_entropy", &got, want);
            probe_free(&p);
            arena_free(arena);
        }
}

/* A loss that is the mean of differences, not the difference of means. */
Test(special, label_smoothing_of_large_logits_keeps_its_digits)
{
    static const double zero = 0, want = 1.9459101490553132; /* log(7) */
    static const double x[7] = {1e20, 1e20, 1e20, 1e20, 1e20, 1e20, 1e20};
    Probe p = probe("cross_entropy", "f32[1, 7] i32[1]", "label_smoothing = 0.5",
                    (const double *const[]){x, &zero});
    Tensor loss = result_of(&p, 0);
    expect("label_smoothing", &loss, &want, 1e-6);
    probe_free(&p);
}

/* Scores of 8192, 8193 and 8190, exactly; the gradient by the values is their softmax. */
Test(special, attention_to_large_scores_has_its_slopes)
{
    static const double q = 8192, v[CLASSES] = {1, -2, 3};
    static const double k[CLASSES] = {1, 1 + 0x1p-13, 1 - 0x1p-12};
    static const double score[CLASSES] = {8192, 8193, 8190};
    double weight[CLASSES], by_k[CLASSES], mean = 0;
    softmax(score, weight);
    for (int i = 0; i < CLASSES; i++)
        mean += weight[i] * v[i];
    for (int i = 0; i < CLASSES; i++)
        by_k[i] = weight[i] * (v[i] - mean) * q;
    Probe p = probe("sdpa", "f32[1, 1, 1, 1] f32[1, 1, 3, 1] f32[1, 1, 3, 1]", "scale = 1",
                    (const double *const[]){&q, k, v});
    Tensor got_v = slope_of(&p, 2), got_k = slope_of(&p, 1);
    expect("by v", &got_v, weight, 2e-6);
    expect("by k", &got_k, by_k, 1e-5);
    probe_free(&p);
}

Test(special, softmax_of_large_numbers_sums_to_one)
{
    for (int row = 0; row < ROWS; row++) {
        double want[CLASSES];
        softmax(logits[row], want);
        for (int axis = 0; axis < 2; axis++) {
            Probe p = probe("softmax", axis ? "f32[1, 3]" : "f32[3, 1]",
                            axis ? "axis = 1" : "axis = 0", (const double *const[]){logits[row]});
            Tensor y = result_of(&p, 0);
            expect_small("softmax", &y, want);
            probe_free(&p);
        }
    }
}

/* ---- Normalisation --------------------------------------------------------------------------- */

enum { WIDTH = 4 };

static const struct {
    const char *op, *operands, *settings;
    bool centred;
} norms[] = {
    {"normalize", "f32[1, 4]", "eps = 0", true},
    {"layernorm", "f32[1, 4]", "eps = 0", true},
    {"rmsnorm", "f32[1, 4]", "eps = 0", false},
    {"groupnorm", "f32[1, 2, 2]", "groups = 1, eps = 0", true},
    {"instancenorm", "f32[1, 1, 4]", "eps = 0", true},
    {"batchnorm_train", "f32[4, 1] f32[1]:1..1 f32[1]:0..0", "eps = 0", true},
};
enum { NORMS = sizeof norms / sizeof *norms };

static void normalised(const double *x, bool centred, double *y)
{
    double mean = 0, square = 0;
    for (int i = 0; i < WIDTH; i++)
        mean += centred ? x[i] / WIDTH : 0;
    for (int i = 0; i < WIDTH; i++)
        square += (x[i] - mean) * (x[i] - mean) / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        y[i] = (x[i] - mean) / sqrt(square);
}

/* Parameters as they are at first: scales of 1, biases of 0. */
static Probe probe_norm(int n, const double *x)
{
    static const double one[WIDTH] = {1, 1, 1, 1}, zero[WIDTH] = {0};
    static const char *const with_params[NORMS] = {NULL, "f32[1, 4] f32[4] f32[4]",
                                                   "f32[1, 4] f32[4]", "f32[1, 2, 2] f32[2] f32[2]",
                                                   "f32[1, 1, 4] f32[1] f32[1]"};
    return probe(norms[n].op, with_params[n] ? with_params[n] : norms[n].operands,
                 norms[n].settings, (const double *const[]){x, one, zero});
}

Test(special, norms_of_what_overflows_are_right)
{
    static const double scale[] = {1, 1e20, 1e37};
    for (int n = 0; n < NORMS; n++)
        for (int k = 0; k < 3; k++) {
            double x[WIDTH] = {1, -1, 3, 0.5}, want[WIDTH];
            normalised(x, norms[n].centred, want);
            for (int i = 0; i < WIDTH; i++)
                x[i] *= scale[k];
            Probe p = probe_norm(n, x);
            Tensor y = result_of(&p, 0);
            expect(norms[n].op, &y, want, 1e-5);
            probe_free(&p);
        }
}

Test(special, norms_do_not_hide_infinities)
{
    for (int n = 0; n < NORMS; n++)
        for (int k = 0; k < 2; k++) {
            const double x[WIDTH] = {1, k ? INF : NAN, 3, 0.5};
            Probe p = probe_norm(n, x);
            Tensor y = result_of(&p, 0);
            cr_expect(isnan(y.at[1]), "%s of %g is %g", norms[n].op, x[1], y.at[1]);
            probe_free(&p);
        }
}

/* ---- Optimizers ------------------------------------------------------------------------------ */

/* A parameter that is infinite stays so where nothing pulls at it; a gradient that is, moves it. */
Test(special, updates_keep_infinities)
{
    static const struct {
        const char *op, *operands, *settings;
        bool moves; /* by an infinite gradient */
    } table[] = {
        {"sgd", "f32[3] f32[3]", "", true},
        {"sgd", "f32[3] f32[3] - f32[3]", "momentum = 0.9", true},
        {"adam", "f32[3] f32[3] - f32[3] f32[3]", "", false},
        {"adamw", "f32[3] f32[3] - f32[3] f32[3]", "weight_decay = 0", false},
        {"rmsprop", "f32[3] f32[3] - f32[3]", "", false},
        {"adagrad", "f32[3] f32[3] - f32[3]", "", false},
        {"lion", "f32[3] f32[3] - f32[3]", "weight_decay = 0", false},
    };
    static const double w[3] = {INF, -INF, 1}, g[3] = {0.5, 0.5, INF}, state[3] = {0.5, 0.5, 0.5};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        Probe p = probe(table[i].op, table[i].operands, table[i].settings,
                        (const double *const[]){w, g, NULL, state, state});
        Tensor to = result_of(&p, 0);
        cr_expect(to.at[0] == INF && to.at[1] == -INF, "%s makes %g, %g of infinities", table[i].op,
                  to.at[0], to.at[1]);
        cr_expect(!table[i].moves || to.at[2] == -INF, "%s moves by infinity to %g", table[i].op,
                  to.at[2]);
        probe_free(&p);
    }
}

Test(special, updates_do_not_hide_nan)
{
    static const double w[1] = {1}, g[1] = {NAN}, state[1] = {0.5};
    static const char *const ops[] = {"sgd", "rmsprop", "adagrad", "lion"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        Probe p = probe(ops[i], i ? "f32[1] f32[1] - f32[1]" : "f32[1] f32[1]", "",
                        (const double *const[]){w, g, NULL, state});
        Tensor to = result_of(&p, 0);
        cr_expect(isnan(to.at[0]), "%s makes %g of NaN", ops[i], to.at[0]);
        probe_free(&p);
    }
    static const double want[] = {NAN, 0, 1, 0.25};
    static const double gradient[][2] = {{NAN, 1}, {INF, 1}, {0, 0}, {0, 4}};
    for (int i = 0; i < 4; i++) {
        Probe p = probe("clip_factor", "f32[2]", "limit = 1", (const double *const[]){gradient[i]});
        Tensor factor = result_of(&p, 0);
        expect("clip_factor", &factor, &want[i], 1e-6);
        probe_free(&p);
    }
}
