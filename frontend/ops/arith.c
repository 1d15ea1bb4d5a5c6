/* Arithmetic, element by element. A row here is its expression: broadcasting, dtypes and fusion
 * are the same for all of them. Expressions that also run on integers (no OP_FLOAT) must mean
 * the same there; constants are written so that a real stays a gp_real. */
#include "frontend/frontend.h"

#define ONE             \
    {                   \
        {               \
            .name = "x" \
        }               \
    }
#define TWO             \
    {                   \
        {.name = "x"},  \
        {               \
            .name = "y" \
        }               \
    }
#define REAL OP_ELEMENTWISE | OP_FLOAT
#define NUMBER OP_ELEMENTWISE | OP_NUMBERS

static bool cast_shape(Graph *g, Call *c)
{
    View x = call_view(g, c, 0);
    Dtype dtype = (Dtype)call_int(c, "dtype");
    if (dtype == F16 || dtype == BF16)
        return call_error(g, c, "nothing computes in %s yet; f32 is the only real type",
                          dtype_name(dtype));
    return call_output(g, c, dtype, x.rank, x.dim);
}

/* What it hides from the gradient pass is only there when training; inference has no node. */
static bool stop_gradient_build(Graph *g, Call *c)
{
    Use x = call_operand(c, 0);
    call_result(g, c, g->training ? call_op(g, c, "detach", 1, &x) : x);
    return c->result.at[0].value != NONE;
}

const OpRow ops_arith[] = {
    {.name = "add",
     .expr = "a + b",
     .dexpr = {"dy", "dy"},
     .args = TWO,
     .flags = NUMBER,
     .help = "x + y"},
    {.name = "sub",
     .expr = "a - b",
     .dexpr = {"dy", "-dy"},
     .args = TWO,
     .flags = NUMBER,
     .help = "x - y"},
    {.name = "mul",
     .expr = "a * b",
     .dexpr = {"dy * b", "dy * a"},
     .args = TWO,
     .flags = NUMBER,
     .help = "x * y"},
    {.name = "div",
     .expr = "a / b",
     .dexpr = {"dy / b", "-dy * y / b"},
     .args = TWO,
     .flags = REAL,
     .help = "x / y, never an integer"},
    {.name = "pow",
     .expr = "gp_pow(a, b)",
     .dexpr = {"dy * b * gp_pow(a, b - 1)", "a > 0 ? dy * y * gp_log(a) : 0"},
     .args = TWO,
     .flags = REAL,
     .help = "x to the power y"},
    {.name = "neg", .expr = "-a", .dexpr = {"-dy"}, .args = ONE, .flags = NUMBER, .help = "-x"},
    {.name = "abs",
     .expr = "a < 0 ? -a : a",
     .dexpr = {"a < 0 ? -dy : a > 0 ? dy : 0"},
     .args = ONE,
     .flags = NUMBER,
     .help = "|x|"},
    {.name = "square",
     .expr = "a * a",
     .dexpr = {"2 * dy * a"},
     .args = ONE,
     .flags = NUMBER,
     .help = "x * x"},
    {.name = "sign",
     .expr = "a > 0 ? 1 : a < 0 ? -1 : a",
     .dexpr = {"0"},
     .args = ONE,
     .flags = NUMBER,
     .help = "-1, 0 or 1"},
    {.name = "exp",
     .expr = "gp_exp(a)",
     .dexpr = {"dy * y"},
     .args = ONE,
     .flags = REAL,
     .help = "e to the power x"},
    {.name = "log",
     .expr = "gp_log(a)",
     .dexpr = {"dy / a"},
     .args = ONE,
     .flags = REAL,
     .help = "natural logarithm"},
    {.name = "sqrt",
     .expr = "gp_sqrt(a)",
     .dexpr = {"dy / (2 * y)"},
     .args = ONE,
     .flags = REAL,
     .help = "square root"},
    {.name = "rsqrt",
     .expr = "1 / gp_sqrt(a)",
     .dexpr = {"(gp_real)-0.5 * dy * y * y * y"},
     .args = ONE,
     .flags = REAL,
     .help = "1 / sqrt(x)"},
    {.name = "reciprocal",
     .expr = "1 / a",
     .dexpr = {"-dy * y * y"},
     .args = ONE,
     .flags = REAL,
     .help = "1 / x"},
    {.name = "floor",
     .expr = "gp_floor(a)",
     .dexpr = {"0"},
     .args = ONE,
     .flags = REAL,
     .help = "down to whole"},
    {.name = "ceil",
     .expr = "gp_ceil(a)",
     .dexpr = {"0"},
     .args = ONE,
     .flags = REAL,
     .help = "up to whole"},
    {.name = "round",
     .expr = "gp_rint(a)",
     .dexpr = {"0"},
     .args = ONE,
     .flags = REAL,
     .help = "to the nearest whole number, halves to the even one"},
    {.name = "sin",
     .expr = "gp_sin(a)",
     .dexpr = {"dy * gp_cos(a)"},
     .args = ONE,
     .flags = REAL,
     .help = "sine"},
    {.name = "cos",
     .expr = "gp_cos(a)",
     .dexpr = {"-dy * gp_sin(a)"},
     .args = ONE,
     .flags = REAL,
     .help = "cosine"},
    {.name = "erf",
     .expr = "gp_erf(a)",
     .dexpr = {"dy * (gp_real)1.1283791670955126 * gp_exp(-a * a)"},
     .args = ONE,
     .flags = REAL,
     .help = "error function"},
    /* The last arms of both are reached by NaN alone, which the sum passes on. */
    {.name = "minimum",
     .expr = "a <= b ? a : b < a ? b : a + b",
     .dexpr = {"a <= b ? dy : 0", "a <= b ? 0 : dy"},
     .args = TWO,
     .flags = NUMBER,
     .help = "the smaller of x and y"},
    {.name = "maximum",
     .expr = "a >= b ? a : b > a ? b : a + b",
     .dexpr = {"a >= b ? dy : 0", "a >= b ? 0 : dy"},
     .args = TWO,
     .flags = NUMBER,
     .help = "the larger of x and y"},
    {.name = "clip",
     .expr = "a < low ? low : a > high ? high : a",
     .dexpr = {"a < low ? 0 : a > high ? 0 : dy"},
     .args = {{.name = "x"},
              {.name = "low", .kind = ARG_FLOAT, .help = "smallest result"},
              {.name = "high", .kind = ARG_FLOAT, .help = "largest result"}},
     .flags = REAL,
     .help = "x kept between low and high"},
    /* The words stand in the order of Dtype. Storing is what converts. */
    {.name = "cast",
     .expr = "a",
     .dexpr = {"dy"},
     .args = {{.name = "x"},
              {.name = "dtype", .kind = ARG_WORD, .words = "f32 f16 bf16 i32 i64 u8 bool"}},
     .shape = cast_shape,
     .flags = OP_ELEMENTWISE,
     .help = "x as another type; reals go towards zero and stop at the ends of the range"},
    {.name = "stop_gradient",
     .args = ONE,
     .build = stop_gradient_build,
     .help = "x, taken as a constant by gradients"},
    {.name = "detach",
     .expr = "a",
     .dexpr = {"0"},
     .args = ONE,
     .flags = OP_ELEMENTWISE | OP_HIDDEN},
    {.name = "copy",
     .expr = "a",
     .dexpr = {"dy"},
     .args = ONE,
     .flags = OP_ELEMENTWISE | OP_HIDDEN},
    {0},
};
