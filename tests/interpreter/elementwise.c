/* Ops of one element at a time: a function of up to three operands, and its partial derivatives.
 * Both get the settings that the op names, in order. */
#include "tests/interpreter/interpreter.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    double (*f)(const double *x, const double *k);
    void (*d)(const double *x, double y, const double *k, double *to); /* NULL: no derivative */
    const char *setting[2];
} Each;

static const double pi = 3.14159265358979323846;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double normal_below(double x) /* the distribution function */
{
    return erfc(-x / sqrt(2)) / 2;
}

static double normal_density(double x)
{
    return exp(-x * x / 2) / sqrt(2 * pi);
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* The inner function of gelu's form with tanh (Hendrycks and Gimpel, 2016). */
static double gelu_inner(double x)
{
    return sqrt(2 / pi) * (x + 0.044715 * x * x * x);
}

#define F(name, expression)                                  \
    static double name##_f(const double *x, const double *k) \
    {                                                        \
        (void)x, (void)k;                                    \
        return (expression);                                 \
    }
#define D(name, ...)                                                             \
    static void name##_d(const double *x, double y, const double *k, double *to) \
    {                                                                            \
        const double all[] = {__VA_ARGS__};                                      \
        (void)x, (void)y, (void)k;                                               \
        memcpy(to, all, sizeof all);                                             \
    }

/* clang-format off */
F(add, x[0] + x[1])
D(add, 1, 1)
F(sub, x[0] - x[1])
D(sub, 1, -1)
F(mul, x[0] * x[1])
D(mul, x[1], x[0])
F(divide, x[0] / x[1])
D(divide, 1 / x[1], -x[0] / (x[1] * x[1]))
F(power, pow(x[0], x[1]))
D(power, x[1] == 0 ? 0 : x[1] * pow(x[0], x[1] - 1), x[0] > 0 ? y * log(x[0]) : 0)
F(maximum, x[0] >= x[1] ? x[0] : x[1])
D(maximum, x[0] >= x[1], !(x[0] >= x[1]))
F(minimum, x[0] <= x[1] ? x[0] : x[1])
D(minimum, x[0] <= x[1], !(x[0] <= x[1]))
F(neg, -x[0])
D(neg, -1)
F(absolute, fabs(x[0]))
D(absolute, x[0] > 0 ? 1 : x[0] < 0 ? -1 : 0)
F(square, x[0] * x[0])
D(square, 2 * x[0])
F(exponential, exp(x[0]))
D(exponential, y)
F(logarithm, log(x[0]))
D(logarithm, 1 / x[0])
F(root, sqrt(x[0]))
D(root, 1 / (2 * y))
F(rsqrt, 1 / sqrt(x[0]))
D(rsqrt, -y / (2 * x[0]))
F(reciprocal, 1 / x[0])
D(reciprocal, -1 / (x[0] * x[0]))
F(sine, sin(x[0]))
D(sine, cos(x[0]))
F(cosine, cos(x[0]))
D(cosine, -sin(x[0]))
F(error, erf(x[0]))
D(error, 2 / sqrt(pi) * exp(-x[0] * x[0]))
F(hyperbolic, tanh(x[0]))
D(hyperbolic, 1 - y * y)
F(logistic, sigmoid(x[0]))
D(logistic, y * (1 - y))
F(bce, -(x[1] * fmax(log(x[0]), -100) + (1 - x[1]) * fmax(log(1 - x[0]), -100)))
D(bce, (x[0] - x[1]) / fmax(x[0] * (1 - x[0]), 1e-12), log((1 - x[0]) / x[0]))
F(bce_logits, fmax(x[0], 0) - x[0] * x[1] + log1p(exp(-fabs(x[0]))))
D(bce_logits, sigmoid(x[0]) - x[1], -x[0])
F(divergence, x[1] > 0 ? x[1] * (log(x[1]) - x[0]) : 0)
D(divergence, -x[1], log(x[1]) + 1 - x[0])
F(softplus, softplus(x[0]))
D(softplus, sigmoid(x[0]))
F(silu, x[0] * sigmoid(x[0]))
D(silu, sigmoid(x[0]) * (1 + x[0] * (1 - sigmoid(x[0]))))
F(relu, x[0] > 0 ? x[0] : 0)
D(relu, x[0] > 0)
F(leaky, x[0] < 0 ? k[0] * x[0] : x[0])
D(leaky, x[0] < 0 ? k[0] : 1)
F(prelu, x[0] < 0 ? x[1] * x[0] : x[0])
D(prelu, x[0] < 0 ? x[1] : 1, x[0] < 0 ? x[0] : 0)
F(elu, x[0] > 0 ? x[0] : k[0] * expm1(x[0]))
D(elu, x[0] > 0 ? 1 : k[0] * exp(x[0]))
F(clip, fmin(fmax(x[0], k[0]), k[1]))
D(clip, x[0] >= k[0] && x[0] <= k[1])
F(gelu, x[0] * normal_below(x[0]))
D(gelu, normal_below(x[0]) + x[0] * normal_density(x[0]))
F(gelu_tanh, x[0] / 2 * (1 + tanh(gelu_inner(x[0]))))
D(gelu_tanh, (1 + tanh(gelu_inner(x[0]))) / 2 +
             x[0] / 2 * (1 - tanh(gelu_inner(x[0])) * tanh(gelu_inner(x[0]))) *
             sqrt(2 / pi) * (1 + 3 * 0.044715 * x[0] * x[0]))
F(copy, x[0])
D(copy, 1)
F(choose, x[0] != 0 ? x[1] : x[2])
D(choose, 0, x[0] != 0, x[0] == 0)
F(equal, x[0] == x[1])
F(less, x[0] < x[1])
F(less_equal, x[0] <= x[1])
F(greater, x[0] > x[1])
F(greater_equal, x[0] >= x[1])
F(not_equal, x[0] != x[1])
F(both, x[0] != 0 && x[1] != 0)
F(either, x[0] != 0 || x[1] != 0)
F(inverse, x[0] == 0)
/* clang-format on */

static const Each table[] = {
    {"add", add_f, add_d, {0}},
    {"sub", sub_f, sub_d, {0}},
    {"mul", mul_f, mul_d, {0}},
    {"div", divide_f, divide_d, {0}},
    {"pow", power_f, power_d, {0}},
    {"maximum", maximum_f, maximum_d, {0}},
    {"minimum", minimum_f, minimum_d, {0}},
    {"neg", neg_f, neg_d, {0}},
    {"abs", absolute_f, absolute_d, {0}},
    {"square", square_f, square_d, {0}},
    {"exp", exponential_f, exponential_d, {0}},
    {"log", logarithm_f, logarithm_d, {0}},
    {"sqrt", root_f, root_d, {0}},
    {"rsqrt", rsqrt_f, rsqrt_d, {0}},
    {"reciprocal", reciprocal_f, reciprocal_d, {0}},
    {"sin", sine_f, sine_d, {0}},
    {"cos", cosine_f, cosine_d, {0}},
    {"erf", error_f, error_d, {0}},
    {"tanh", hyperbolic_f, hyperbolic_d, {0}},
    {"sigmoid", logistic_f, logistic_d, {0}},
    {"bce_each", bce_f, bce_d, {0}},
    {"bce_with_logits_each", bce_logits_f, bce_logits_d, {0}},
    {"kl_div_each", divergence_f, divergence_d, {0}},
    {"softplus", softplus_f, softplus_d, {0}},
    {"silu", silu_f, silu_d, {0}},
    {"relu", relu_f, relu_d, {0}},
    {"leaky_relu_rising", leaky_f, leaky_d, {"slope"}},
    {"leaky_relu_falling", leaky_f, leaky_d, {"slope"}},
    {"prelu_each", prelu_f, prelu_d, {0}},
    {"elu", elu_f, elu_d, {"alpha"}},
    {"clip", clip_f, clip_d, {"low", "high"}},
    {"gelu_exact", gelu_f, gelu_d, {0}},
    {"gelu_tanh", gelu_tanh_f, gelu_tanh_d, {0}},
    {"copy", copy_f, copy_d, {0}},
    {"detach", copy_f, NULL, {0}},
    {"where", choose_f, choose_d, {0}},
    {"equal", equal_f, NULL, {0}},
    {"not_equal", not_equal_f, NULL, {0}},
    {"less", less_f, NULL, {0}},
    {"less_equal", less_equal_f, NULL, {0}},
    {"greater", greater_f, NULL, {0}},
    {"greater_equal", greater_equal_f, NULL, {0}},
    {"and", both_f, NULL, {0}},
    {"or", either_f, NULL, {0}},
    {"not", inverse_f, NULL, {0}},
};

static const Each *each_of(const Run *r, double *k)
{
    const char *name = r->g->node.at[r->node].op->name;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const Each *each = &table[i];
        if (strcmp(each->name, name) != 0)
            continue;
        for (int s = 0; s < 2; s++)
            k[s] = each->setting[s] ? run_number(r, each->setting[s]) : 0;
        return each;
    }
    stop("the op %s is not in the table of elementwise ops", name);
}

static void forward(const Run *r)
{
    double k[2];
    const Each *each = each_of(r, k);
#pragma omp parallel for
    for (int64_t i = 0; i < r->out[0].count; i++) {
        double x[3] = {0};
        for (int a = 0; a < r->ins; a++)
            x[a] = r->in[a].at[i];
        r->out[0].at[i] = each->f(x, k);
    }
}

static void backward(const Run *r)
{
    double k[2];
    const Each *each = each_of(r, k);
#pragma omp parallel for
    for (int64_t i = 0; i < r->out[0].count; i++) {
        double x[3] = {0}, d[3];
        for (int a = 0; a < r->ins; a++)
            x[a] = r->in[a].at[i];
        each->d(x, r->out[0].at[i], k, d);
        for (int a = 0; a < r->ins; a++)
            if (r->din[a].at)
                r->din[a].at[i] += d[a] * r->dout[0].at[i];
    }
}

/* ---- dropout --------------------------------------------------------------------------------- */

static double factor(const Run *r, int64_t i, double rate)
{
    return dropout_factor(r->seed, r->step, r->g->node.at[r->node].stream, i, rate);
}

static void drop(const Run *r)
{
    double rate = run_number(r, "rate");
    for (int64_t i = 0; i < r->out[0].count; i++)
        r->out[0].at[i] = r->in[0].at[i] * factor(r, i, rate);
}

static void drop_back(const Run *r)
{
    double rate = run_number(r, "rate");
    for (int64_t i = 0; r->din[0].at && i < r->out[0].count; i++)
        r->din[0].at[i] += r->dout[0].at[i] * factor(r, i, rate);
}

#define EACH(name)              \
    {                           \
        name, forward, backward \
    }
#define FLAT(name)          \
    {                       \
        name, forward, NULL \
    }

const Op naive_elementwise[] = {
    EACH("add"),
    EACH("sub"),
    EACH("mul"),
    EACH("div"),
    EACH("pow"),
    EACH("maximum"),
    EACH("minimum"),
    EACH("neg"),
    EACH("abs"),
    EACH("square"),
    EACH("exp"),
    EACH("log"),
    EACH("sqrt"),
    EACH("rsqrt"),
    EACH("reciprocal"),
    EACH("sin"),
    EACH("cos"),
    EACH("erf"),
    EACH("tanh"),
    EACH("sigmoid"),
    EACH("bce_each"),
    EACH("bce_with_logits_each"),
    EACH("kl_div_each"),
    EACH("softplus"),
    EACH("silu"),
    EACH("relu"),
    EACH("leaky_relu_rising"),
    EACH("leaky_relu_falling"),
    EACH("prelu_each"),
    EACH("elu"),
    EACH("clip"),
    EACH("gelu_exact"),
    EACH("gelu_tanh"),
    EACH("copy"),
    EACH("where"),
    FLAT("detach"),
    FLAT("equal"),
    FLAT("not_equal"),
    FLAT("less"),
    FLAT("less_equal"),
    FLAT("greater"),
    FLAT("and"),
    FLAT("greater_equal"),
    FLAT("or"),
    FLAT("not"),
    {"drop", drop, drop_back},
    {0},
};
