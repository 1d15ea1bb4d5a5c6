/* Activations, element by element. NaN goes through all of them: a comparison that NaN fails
 * must lead to the operand. Where two slopes meet, the one is taken that PyTorch takes. */
#include "frontend/ops/elementwise.h"
#include "frontend/ops/rules.h"

enum { GELU_EXACT, GELU_TANH };

static bool gelu_build(Graph *g, Call *c)
{
    Use x = call_operand(c, 0);
    bool exact = call_int(c, "form") == GELU_EXACT;
    call_result(g, c, call_op(g, c, exact ? "gelu_exact" : "gelu_tanh", 1, &x));
    return c->result.at[0].value != NONE;
}

static bool leaky_relu_build(Graph *g, Call *c)
{
    const double slope = call_attr(c, "slope")->number;
    Call each = call_begin(g, c, slope >= 0 ? "leaky_relu_rising" : "leaky_relu_falling");
    call_set(&each, "slope", slope);
    call_use(g, &each, call_operand(c, 0));
    if (!call_finish(g, &each))
        return false;
    call_result(g, c, each.result.at[0]);
    return true;
}

static int channel_axis(const View *x)
{
    return x->rank > 1 ? 1 : 0;
}

static bool prelu_params(Graph *g, Call *c)
{
    if (call_has(c, 1))
        return true;
    View x = call_view(g, c, 0);
    int64_t channels = x.rank ? x.dim[channel_axis(&x)] : 1;
    return call_param(g, c, "slope", init_const(0.25), 1, &channels); /* He et al. 2015 */
}

/* A slope of one number for each channel is broadcast along the channel axis; any other shape
 * broadcasts as usual. */
static bool prelu_build(Graph *g, Call *c)
{
    View x = call_view(g, c, 0), slope = call_view(g, c, 1);
    Use use[2] = {call_operand(c, 0), call_operand(c, 1)};
    if (slope.rank == 1 && x.rank > 2 && slope.dim[0] != 1) {
        if (slope.dim[0] != x.dim[1])
            return call_error_at(g, c, 1, "slope has %lld elements for the %lld channels of %s",
                                 (long long)slope.dim[0], (long long)x.dim[1], use_text(g, use[0]));
        use[1] = use_along(g, use[1], 1, x.rank);
    }
    call_result(g, c, call_op(g, c, "prelu_each", 2, use));
    return c->result.at[0].value != NONE;
}

const OpRow ops_activation[] = {
    {.name = "relu",
     .expr = "a <= 0 ? 0 : a", /* of -0 too: the largest of a window may come before it or after */
     .dexpr = {"y <= 0 ? 0 : dy"},
     .args = ONE,
     .flags = OP_ELEMENTWISE | OP_NUMBERS | OP_RECTIFIES,
     .batch = batch_each,
     .help = "max(x, 0)"},
    {.name = "leaky_relu",
     .args = {{.name = "x"},
              {.name = "slope", .kind = ARG_FLOAT, .fallback = "0.01", .help = "below 0"}},
     .build = leaky_relu_build,
     .help = "x, or slope * x below 0"},
    {.name = "leaky_relu_rising", /* the sign of the result is that of x, or it is 0 */
     .expr = "a < 0 ? slope * a : a",
     .dexpr = {"y > 0 ? dy : slope * dy"},
     .args = {{.name = "x"}, {.name = "slope", .kind = ARG_FLOAT}},
     .flags = REAL | OP_HIDDEN,
     .batch = batch_each},
    {.name = "leaky_relu_falling",
     .expr = "a < 0 ? slope * a : a",
     .dexpr = {"a > 0 ? dy : slope * dy"},
     .args = {{.name = "x"}, {.name = "slope", .kind = ARG_FLOAT}},
     .flags = REAL | OP_HIDDEN | OP_AGAIN,
     .batch = batch_each},
    {.name = "prelu",
     .args = {{.name = "x"},
              {.name = "slope",
               .flags = ARG_PARAM,
               .help = "one for each channel (axis 1)",
               .foreign = "weight"}},
     .params = prelu_params,
     .build = prelu_build,
     .help = "leaky_relu whose slopes are learned"},
    {.name = "prelu_each",
     .expr = "a < 0 ? b * a : a",
     .dexpr = {"a > 0 ? dy : b * dy", "a > 0 ? 0 : a * dy"},
     .args = {{.name = "x"}, {.name = "slope"}},
     .flags = REAL | OP_HIDDEN | OP_AGAIN,
     .batch = batch_each},
    {.name = "elu",
     .expr = "a > 0 ? a : alpha * gp_expm1(a)",
     .dexpr = {"a > 0 ? dy : dy * alpha * gp_exp(a)"},
     .args = {{.name = "x"}, {.name = "alpha", .kind = ARG_FLOAT, .fallback = "1.0"}},
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "x, or alpha * (exp(x) - 1) below 0"},
    {.name = "selu",
     .expr =
         "(gp_real)1.0507009873554805 * (a > 0 ? a : (gp_real)1.6732632423543773 * gp_expm1(a))",
     .dexpr = {"(gp_real)1.0507009873554805 * dy * (a > 0 ? 1 : (gp_real)1.6732632423543773 * "
               "gp_exp(a))"},
     .args = ONE,
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "elu scaled so that activations normalise themselves"},
    {.name = "celu",
     .expr = "a > 0 ? a : alpha * gp_expm1(a / alpha)",
     .dexpr = {"a > 0 ? dy : dy * gp_exp(a / alpha)"},
     .args = {{.name = "x"}, {.name = "alpha", .kind = ARG_FLOAT, .fallback = "1.0"}},
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "x, or alpha * (exp(x / alpha) - 1) below 0"},
    {.name = "gelu",
     .args = {{.name = "x"},
              {.name = "form", .kind = ARG_WORD, .fallback = "exact", .words = "exact tanh"}},
     .build = gelu_build,
     .help = "x times the normal distribution function of x, or its approximation by tanh"},
    {.name = "gelu_exact",
     .expr = "gp_gelu_exact(a)",
     .dexpr = {"dy * gp_gelu_exact_slope(a)"},
     .args = ONE,
     .flags = REAL | OP_HIDDEN | OP_AGAIN,
     .batch = batch_each},
    {.name = "gelu_tanh",
     .expr = "a / gp_gelu_tanh_divisor(a)",
     .dexpr = {"dy * gp_gelu_tanh_slope(a)"},
     .args = ONE,
     .flags = REAL | OP_HIDDEN | OP_AGAIN,
     .batch = batch_each},
    {.name = "silu",
     .expr = "gp_silu(a)",
     .dexpr = {"dy * gp_silu_slope(a)"},
     .args = ONE,
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "x * sigmoid(x), also called swish"},
    {.name = "sigmoid",
     .expr = "gp_sigmoid(a)",
     .dexpr = {"dy * y * (1 - y)"},
     .args = ONE,
     .flags = REAL,
     .batch = batch_each,
     .help = "1 / (1 + exp(-x))"},
    {.name = "tanh",
     .expr = "gp_tanh(a)",
     .dexpr = {"dy * (1 - y * y)"},
     .args = ONE,
     .flags = REAL,
     .batch = batch_each,
     .help = "tanh"},
    {.name = "softplus",
     .expr = "gp_softplus(a)",
     .dexpr = {"dy * -gp_expm1(-y)"}, /* the sigmoid of x */
     .args = ONE,
     .flags = REAL,
     .batch = batch_each,
     .help = "log(1 + exp(x))"},
    {.name = "softsign",
     .expr = "a / (1 + gp_fabs(a))",
     .dexpr = {"dy / ((1 + gp_fabs(a)) * (1 + gp_fabs(a)))"},
     .args = ONE,
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "x / (1 + |x|)"},
    {.name = "hardsigmoid",
     .expr = "gp_hardsigmoid(a)",
     .dexpr = {"a <= -3 ? 0 : a >= 3 ? 0 : dy / 6"},
     .args = ONE,
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "x / 6 + 1 / 2, kept between 0 and 1"},
    {.name = "hardswish",
     .expr = "a * gp_hardsigmoid(a)",
     .dexpr = {"a <= -3 ? 0 : a >= 3 ? dy : dy * (2 * a + 3) / 6"},
     .args = ONE,
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "x * hardsigmoid(x)"},
    {.name = "mish",
     .expr = "a * gp_tanh(gp_softplus(a))",
     .dexpr = {"dy * gp_mish_slope(a)"},
     .args = ONE,
     .flags = REAL | OP_AGAIN,
     .batch = batch_each,
     .help = "x * tanh(softplus(x))"},
    {0},
};
