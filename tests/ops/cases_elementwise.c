/* Elementwise ops against their definitions in double. */
#include "tests/ops/cases.h"

#include <math.h>

typedef double (*Formula)(const double *v, const Case *c);
typedef enum { SAME, REAL, TRUTH } ResultType;

static int weight(Dtype dtype) /* of two types the heavier wins */
{
    return dtype == BOOL            ? 0
           : dtype == U8            ? 1
           : dtype == I32           ? 2
           : dtype == I64           ? 3
           : dtype_is_narrow(dtype) ? 4
                                    : 5;
}

/* To so many digits: reals that are stored in 16 bits, none of them subnormal. */
static double round_to(double x, Dtype dtype)
{
    int exponent;
    const double digits = dtype == F16 ? 2048 : 256, size = frexp(x, &exponent);
    return sizeof(gp_half) == 2 ? ldexp(rint(size * digits) / digits, exponent) : x;
}

static Dtype result_dtype(const Case *c, ResultType type, int first)
{
    Dtype common = c->in[first].dtype;
    for (int i = first; i < c->ins; i++)
        if (weight(c->in[i].dtype) > weight(common))
            common = c->in[i].dtype;
    return type == TRUTH ? BOOL : type == REAL && !dtype_is_narrow(common) ? F32 : common;
}

/* The element of an operand that place `index` of the result sees; axes match from the last. */
static double seen_from(const Tensor *t, int rank, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++) {
        int64_t i = index[rank - t->rank + d];
        at = at * t->dim[d] + (t->dim[d] == 1 ? 0 : i);
    }
    return t->at[at];
}

static Tensor each(const Case *c, Formula formula, Dtype dtype)
{
    int64_t dim[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < c->ins; i++)
        rank = c->in[i].rank > rank ? c->in[i].rank : rank;
    for (int d = 0; d < rank; d++) {
        dim[d] = 1;
        for (int i = 0; i < c->ins; i++) {
            int own = d - (rank - c->in[i].rank);
            if (own >= 0 && c->in[i].dim[own] != 1)
                dim[d] = c->in[i].dim[own];
        }
    }
    Tensor y = case_new(c, dtype, rank, dim);
    for (int64_t k = 0; k < y.count; k++) {
        int64_t index[MAX_RANK], rest = k;
        for (int d = rank - 1; d >= 0; d--) {
            index[d] = rest % dim[d];
            rest /= dim[d];
        }
        double v[4] = {0};
        for (int i = 0; i < c->ins; i++)
            v[i] = seen_from(&c->in[i], rank, index);
        y.at[k] = dtype_is_narrow(dtype) ? round_to(formula(v, c), dtype) : formula(v, c);
    }
    return y;
}

#define FORMULA(name, type, first, expression)                        \
    static double name##_formula(const double *v, const Case *c)      \
    {                                                                 \
        const double a = v[0], b = v[1];                              \
        (void)a, (void)b, (void)c;                                    \
        return expression;                                            \
    }                                                                 \
    static Tensor name(const Case *c)                                 \
    {                                                                 \
        return each(c, name##_formula, result_dtype(c, type, first)); \
    }

static double softplus(double x)
{
    return x > 30 ? x : log(1 + exp(x));
}

static double normal_cdf(double x)
{
    return erfc(-x / sqrt(2.0)) / 2;
}

static double ramp(double x)
{
    return fmax(0, fmin(6, x + 3)) / 6;
}

/* Bit by bit; bit 2 * x + y of `table` is the result for bits x and y. A negative number is as far
 * from -1 as its flipped bits say. */
static double bits(double a, double b, unsigned table)
{
    bool negative = table >> (2 * (a < 0) + (b < 0)) & 1;
    double sum = 0, worth = 1;
    for (int i = 0; i < 54; i++, worth *= 2) {
        bool x = fmod(floor(a / worth), 2) != 0, y = fmod(floor(b / worth), 2) != 0;
        sum += (table >> (2 * x + y) & 1) != negative ? worth : 0;
    }
    return negative ? -1 - sum : sum;
}

static double power_of_two(double n)
{
    return pow(2, n < 0 || n > 63 ? 100 : n);
}

/* The number of this dtype that has the last bits of a whole one. */
static double wrapped(Dtype dtype, double x)
{
    double range = dtype == U8 ? 0x1p8 : dtype == I32 ? 0x1p32 : 0x1p64;
    double low = dtype == U8 ? 0 : -range / 2;
    return x >= low && x < low + range ? x : x - range * floor((x - low) / range);
}

FORMULA(r_add, SAME, 0, a + b)
FORMULA(r_sub, SAME, 0, a - b)
FORMULA(r_mul, SAME, 0, a *b)
FORMULA(r_div, REAL, 0, a / b)
FORMULA(r_pow, REAL, 0, pow(a, b))
FORMULA(r_neg, SAME, 0, -a)
FORMULA(r_abs, SAME, 0, fabs(a))
FORMULA(r_square, SAME, 0, a *a)
FORMULA(r_sign, SAME, 0, a == 0 ? 0 : a / fabs(a))
FORMULA(r_exp, REAL, 0, exp(a))
FORMULA(r_log, REAL, 0, log(a))
FORMULA(r_sqrt, REAL, 0, sqrt(a))
FORMULA(r_rsqrt, REAL, 0, pow(a, -0.5))
FORMULA(r_reciprocal, REAL, 0, pow(a, -1))
FORMULA(r_floor, REAL, 0, floor(a))
FORMULA(r_ceil, REAL, 0, ceil(a))
FORMULA(r_round, REAL, 0, fabs(a - trunc(a)) == 0.5 ? 2 * round(a / 2) : round(a))
FORMULA(r_sin, REAL, 0, sin(a))
FORMULA(r_cos, REAL, 0, cos(a))
FORMULA(r_trunc, REAL, 0, a < 0 ? ceil(a) : floor(a))
FORMULA(r_tan, REAL, 0, sin(a) / cos(a))
FORMULA(r_asin, REAL, 0, atan2(a, sqrt(1 - a * a)))
FORMULA(r_acos, REAL, 0, atan2(sqrt(1 - a * a), a))
FORMULA(r_atan, REAL, 0, atan2(a, 1))
FORMULA(r_sinh, REAL, 0, (exp(a) - exp(-a)) / 2)
FORMULA(r_cosh, REAL, 0, (exp(a) + exp(-a)) / 2)
FORMULA(r_asinh, REAL, 0, a < 0 ? -log(sqrt(a * a + 1) - a) : log(a + sqrt(a * a + 1)))
FORMULA(r_acosh, REAL, 0, log(a + sqrt(a * a - 1)))
FORMULA(r_atanh, REAL, 0, log((1 + a) / (1 - a)) / 2)
FORMULA(r_erf, REAL, 0, 1 - erfc(a))
FORMULA(r_intdiv, SAME, 0, b == 0 ? 0 : trunc(a / b))
FORMULA(r_mod, SAME, 0, b == 0 ? 0 : a - b * floor(a / b))
FORMULA(r_fmod, SAME, 0, b == 0 ? 0 : a - b * trunc(a / b))
FORMULA(r_bit_and, SAME, 0, bits(a, b, 8))
FORMULA(r_bit_or, SAME, 0, bits(a, b, 14))
FORMULA(r_bit_xor, SAME, 0, bits(a, b, 6))
FORMULA(r_bit_not, SAME, 0, c->in[0].dtype == U8 ? 255 - a : -1 - a)
FORMULA(r_shift_left, SAME, 0, wrapped(c->in[0].dtype, a *power_of_two(b)))
FORMULA(r_shift_right, SAME, 0, floor(a / power_of_two(b)))
FORMULA(r_minimum, SAME, 0, fmin(a, b))
FORMULA(r_maximum, SAME, 0, fmax(a, b))
FORMULA(r_clip, REAL, 0, fmin(fmax(a, case_number(c, "low")), case_number(c, "high")))
FORMULA(r_same, SAME, 0, a)
FORMULA(r_equal, TRUTH, 0, a == b)
FORMULA(r_not_equal, TRUTH, 0, a != b)
FORMULA(r_less, TRUTH, 0, a < b)
FORMULA(r_less_equal, TRUTH, 0, a <= b)
FORMULA(r_greater, TRUTH, 0, a > b)
FORMULA(r_greater_equal, TRUTH, 0, a >= b)
FORMULA(r_and, TRUTH, 0, a != 0 && b != 0)
FORMULA(r_or, TRUTH, 0, a != 0 || b != 0)
FORMULA(r_xor, TRUTH, 0, (a != 0) + (b != 0) == 1)
FORMULA(r_isnan, TRUTH, 0, isnan(a) != 0)
FORMULA(r_isinf, TRUTH, 0, isinf(a) != 0)
FORMULA(r_not, TRUTH, 0, a == 0)
FORMULA(r_where, SAME, 1, a != 0 ? b : v[2])
FORMULA(r_relu, SAME, 0, a > 0 ? a : 0)
FORMULA(r_leaky_relu, REAL, 0, a > 0 ? a : a * case_number(c, "slope"))
FORMULA(r_elu, REAL, 0, a > 0 ? a : case_number(c, "alpha") * (exp(a) - 1))
FORMULA(r_celu, REAL, 0,
        fmax(0, a) + fmin(0, case_number(c, "alpha") * (exp(a / case_number(c, "alpha")) - 1)))
FORMULA(r_selu, REAL, 0,
        1.0507009873554804934193349852946 *
            (a > 0 ? a : 1.6732632423543772848170429916717 * (exp(a) - 1)))
FORMULA(r_gelu, REAL, 0, a *normal_cdf(a))
FORMULA(r_gelu_tanh, REAL, 0,
        a *(1 + tanh(sqrt(2 / 3.14159265358979323846) * (a + 0.044715 * pow(a, 3)))) / 2)
FORMULA(r_sigmoid, REAL, 0, exp(a) / (exp(a) + 1))
FORMULA(r_silu, REAL, 0, a *exp(a) / (exp(a) + 1))
FORMULA(r_tanh, REAL, 0, (exp(2 * a) - 1) / (exp(2 * a) + 1))
FORMULA(r_softplus, REAL, 0, softplus(a))
FORMULA(r_softsign, REAL, 0, a > 0 ? a / (1 + a) : a / (1 - a))
FORMULA(r_hardsigmoid, REAL, 0, ramp(a))
FORMULA(r_hardswish, REAL, 0, a *ramp(a))
FORMULA(r_mish, REAL, 0, a *tanh(softplus(a)))

/* Slopes of one number for each channel follow axis 1. */
static Tensor r_prelu(const Case *c)
{
    Tensor y = case_like(c, 0), x = c->in[0], slope = c->in[1];
    int axis = x.rank > 1 ? 1 : 0;
    int64_t inner = 1;
    for (int d = axis + 1; d < x.rank; d++)
        inner *= x.dim[d];
    for (int64_t i = 0; i < y.count; i++) {
        double s = slope.at[slope.count == 1 ? 0 : i / inner % x.dim[axis]];
        y.at[i] = x.at[i] < 0 ? s * x.at[i] : x.at[i];
    }
    return y;
}

static Tensor r_rounded(const Case *c)
{
    Tensor y = case_new(c, F32, c->in[0].rank, c->in[0].dim);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = round_to(c->in[0].at[i], BF16);
    return y;
}

static Tensor r_cast(const Case *c)
{
    static const Dtype dtypes[] = {F32, F16, BF16, I32, I64, U8, BOOL};
    Dtype to = dtypes[(int)case_number(c, "dtype")];
    Tensor y = case_new(c, to, c->in[0].rank, c->in[0].dim);
    for (int64_t i = 0; i < y.count; i++) {
        double x = c->in[0].at[i];
        if (to == BOOL)
            y.at[i] = x != 0;
        else if (to == F32)
            y.at[i] = x;
        else if (c->in[0].dtype == F32) { /* to the ends of the range, but no further */
            double low = to == U8 ? 0 : to == I32 ? -2147483648.0 : -9223372036854775808.0;
            double high = to == U8 ? 255 : to == I32 ? 2147483647.0 : 9223372036854775807.0;
            y.at[i] = fmin(fmax(trunc(x), low), high);
        } else
            y.at[i] = x;
    }
    return y;
}

OP_CASES(elementwise) = {
    {"add", "f32[2, 3] f32[2, 3]", "", r_add},
    {"add", "f32[4, 1, 3] f32[5, 1]", "", r_add},
    {"add", "f32[] f32[7]", "", r_add},
    {"add", "f32[1] f32[1, 1, 1]", "", r_add},
    {"add", "i32[3, 5] i32[5]", "", r_add},
    {"add", "i32[3, 5] f32[3, 1]", "", r_add},
    {"add", "i64[3] i32[3]", "", r_add},
    {"add", "u8[6] u8[6]", "", r_add},
    {"add", "f32[2, 1, 3, 1, 2, 1, 2, 1] f32[2, 1, 3, 1, 2, 1, 5]", "", r_add},
    {"add", "f32[97, 53] f32[97, 53]", "", r_add},
    {"sub", "f32[3, 1] f32[1, 4]", "", r_sub},
    {"sub", "i64[3, 2] i64[3, 2]", "", r_sub},
    {"mul", "f32[5] f32[2, 5]", "", r_mul},
    {"mul", "i32[5] i32[5]", "", r_mul},
    {"div", "f32[5, 2] f32[5, 2]:0.5..3", "", r_div},
    {"div", "i32[5] i32[5]:1..7", "", r_div},
    {"pow", "f32[5, 2]:0.1..3 f32[2]", "", r_pow},
    {"pow", "i32[6]:1..4 i32[6]:0..3", "", r_pow},
    {"neg", "f32[3]", "", r_neg},
    {"neg", "i32[3]", "", r_neg},
    {"abs", "f32[3, 5]", "", r_abs},
    {"abs", "i64[3, 5]", "", r_abs},
    {"square", "f32[7]", "", r_square},
    {"square", "i32[7]", "", r_square},
    {"sign", "f32[7]", "", r_sign},
    {"sign", "i32[40]:-2..2", "", r_sign},
    {"exp", "f32[3, 3]", "", r_exp},
    {"exp", "i32[3, 3]:-3..3", "", r_exp},
    {"log", "f32[9]:0.01..9", "", r_log},
    {"sqrt", "f32[9]:0..9", "", r_sqrt},
    {"rsqrt", "f32[9]:0.1..9", "", r_rsqrt},
    {"reciprocal", "f32[9]:0.5..9", "", r_reciprocal},
    {"floor", "f32[19]:-5..5", "", r_floor},
    {"floor", "i32[19]", "", r_floor},
    {"ceil", "f32[19]:-5..5", "", r_ceil},
    {"round", "f32[19]:-5..5", "", r_round},
    {"sin", "f32[19]:-9..9", "", r_sin},
    {"cos", "f32[19]:-9..9", "", r_cos},
    {"trunc", "f32[19]:-5..5", "", r_trunc},
    {"tan", "f32[19]:-1.3..1.3", "", r_tan},
    {"asin", "f32[19]:-0.95..0.95", "", r_asin},
    {"acos", "f32[19]:-0.95..0.95", "", r_acos},
    {"atan", "f32[19]:-9..9", "", r_atan},
    {"sinh", "f32[19]:-4..4", "", r_sinh},
    {"cosh", "f32[19]:-4..4", "", r_cosh},
    {"asinh", "f32[19]:-9..9", "", r_asinh},
    {"acosh", "f32[19]:1.1..9", "", r_acosh},
    {"atanh", "f32[19]:-0.95..0.95", "", r_atanh},
    {"atan", "i32[19]:-9..9", "", r_atan},
    {"erf", "f32[19]:-3..3", "", r_erf},
    {"intdiv", "i32[40]:-9..9 i32[40]:-3..3", "", r_intdiv},
    {"intdiv", "i64[40]:-9e15..9e15 i64[40]:-9e3..9e3", "", r_intdiv},
    {"intdiv", "i32[3, 1]:-2147483648..-2147483647 i32[7]:2..5", "", r_intdiv},
    {"intdiv", "u8[40]:0..255 u8[40]:0..9", "", r_intdiv},
    {"mod", "i32[40]:-9..9 i32[40]:-3..3", "", r_mod},
    {"mod", "i64[40]:-9e15..9e15 i64[40]:-9e3..9e3", "", r_mod},
    {"mod", "u8[40]:0..255 u8[40]:0..9", "", r_mod},
    {"mod", "f32[5, 8]:-9..9 f32[8]:0.5..3", "", r_mod},
    {"mod", "f32[40]:-9..9 f32[40]:-3..-0.5", "", r_mod},
    {"mod", "i32[5] f32[5]:-3..-0.5", "", r_mod},
    {"fmod", "i32[40]:-9..9 i32[40]:-3..3", "", r_fmod},
    {"fmod", "i64[40]:-9e15..9e15 i64[40]:-9e3..9e3", "", r_fmod},
    {"fmod", "f32[5, 8]:-9..9 f32[8]:0.5..3", "", r_fmod},
    {"fmod", "f32[40]:-9..9 f32[40]:-3..-0.5", "", r_fmod},
    {"bit_and", "i32[40] i32[40]", "", r_bit_and},
    {"bit_and", "i64[40]:-9e15..9e15 i64[40]:-9e15..9e15", "", r_bit_and},
    {"bit_and", "u8[40]:0..255 u8[4, 1]:0..255", "", r_bit_and},
    {"bit_or", "i32[40] i32[40]", "", r_bit_or},
    {"bit_or", "i64[40]:-9e15..9e15 i32[40]", "", r_bit_or},
    {"bit_xor", "i32[40] i32[40]", "", r_bit_xor},
    {"bit_xor", "u8[40]:0..255 u8[40]:0..255", "", r_bit_xor},
    {"bit_not", "i32[40]", "", r_bit_not},
    {"bit_not", "i64[40]:-9e15..9e15", "", r_bit_not},
    {"bit_not", "u8[40]:0..255", "", r_bit_not},
    {"shift_left", "i32[80] i32[80]:-2..70", "", r_shift_left},
    {"shift_left", "i64[80] i64[80]:-2..70", "", r_shift_left},
    {"shift_left", "u8[80]:0..255 u8[80]:0..9", "", r_shift_left},
    {"shift_right", "i32[80]:-1e9..1e9 i32[80]:0..70", "", r_shift_right},
    {"shift_right", "i64[80]:-9e15..9e15 i64[80]:0..70", "", r_shift_right},
    {"shift_right", "u8[80]:0..255 u8[80]:0..9", "", r_shift_right},
    {"minimum", "f32[4, 5] f32[5]", "", r_minimum},
    {"minimum", "i32[4, 5] i32[4, 1]", "", r_minimum},
    {"maximum", "f32[4, 5] f32[5]", "", r_maximum},
    {"maximum", "i64[4] i32[1]", "", r_maximum},
    {"clip", "f32[33]", "low = -1, high = 0.5", r_clip},
    {"rounded", "f32[333]", "dtype = 2", r_rounded, .tolerance = 1e-12},
    {"add", "bf16[4, 5] bf16[5]", "", r_add, .tolerance = 1. / 128},
    {"mul", "f16[7, 5] f16[7, 1]", "", r_mul, .tolerance = 1. / 1024},
    {"mul", "bf16[33] f32[33]", "", r_mul},
    {"gelu", "bf16[65]", "", r_gelu, .tolerance = 1. / 128},
    {"relu", "f16[65]", "", r_relu, .tolerance = 1e-12},
    {"cast", "f32[33]:-300..300", "dtype = i32", r_cast},
    {"cast", "f32[9]:-1e10..1e10", "dtype = i32", r_cast},
    {"cast", "f32[33]:-300..300", "dtype = i64", r_cast},
    {"cast", "f32[33]:-300..300", "dtype = u8", r_cast},
    {"cast", "f32[2, 3]", "dtype = bool", r_cast},
    {"cast", "f32[2, 3]", "dtype = f32", r_cast},
    {"cast", "i32[33]:-2..2", "dtype = bool", r_cast},
    {"cast", "i32[3]", "dtype = f32", r_cast},
    {"cast", "i64[3]", "dtype = i32", r_cast},
    {"cast", "bool[5, 1]", "dtype = f32", r_cast},
    {"cast", "bool[5]", "dtype = i32", r_cast},
    {"cast", "u8[5]", "dtype = i64", r_cast},
    {"stop_gradient", "f32[3, 2]", "", r_same},
    {"stop_gradient", "f32[3, 2]", "", r_same, .training = true},
    {"copy", "f32[3, 2, 5]", "", r_same},
    {"copy", "i64[3, 2]", "", r_same},
    {"copy", "u8[3]", "", r_same},
    {"copy", "bool[3, 1]", "", r_same},
    {"equal", "i32[40]:0..3 i32[40]:0..3", "", r_equal},
    {"equal", "f32[4] f32[1]", "", r_equal},
    {"equal", "bool[9] bool[9]", "", r_equal},
    {"equal", "u8[40]:0..3 u8[40]:0..3", "", r_equal},
    {"not_equal", "i64[40]:0..3 i64[40]:0..3", "", r_not_equal},
    {"less", "f32[3, 4] f32[4]", "", r_less},
    {"less", "i32[40]:0..3 i32[40]:0..3", "", r_less},
    {"less_equal", "i32[40]:0..3 i32[40]:0..3", "", r_less_equal},
    {"greater", "f32[3, 4] f32[4]", "", r_greater},
    {"greater", "i32[40]:0..3 f32[40]:0..3", "", r_greater},
    {"greater_equal", "i32[40]:0..3 i32[40]:0..3", "", r_greater_equal},
    {"and", "bool[9] bool[3, 9]", "", r_and},
    {"or", "bool[9] bool[9]", "", r_or},
    {"xor", "bool[9] bool[3, 9]", "", r_xor},
    {"isnan", "f32[9]", "", r_isnan},
    {"isnan", "f32[9]:nan..nan", "", r_isnan},
    {"isnan", "i32[9]", "", r_isnan},
    {"isinf", "f32[9]:nan..nan", "", r_isinf},
    {"isinf", "f32[9]:-3e38..3e38", "", r_isinf},
    {"isinf", "f32[9]:-inf..-inf", "", r_isinf},
    {"isinf", "f32[9]:inf..inf", "", r_isinf},
    {"not", "bool[9]", "", r_not},
    {"where", "bool[4, 5] f32[4, 5] f32[5]", "", r_where},
    {"where", "bool[4, 1] i32[5] i32[1]", "", r_where},
    {"where", "bool[7] bool[7] bool[7]", "", r_where},
    {"where", "bool[7] i32[7] f32[7]", "", r_where},
    {"relu", "f32[3, 7]", "", r_relu},
    {"relu", "i32[3, 7]", "", r_relu},
    {"leaky_relu", "f32[17]", "", r_leaky_relu},
    {"leaky_relu", "f32[17]", "slope = 0.3", r_leaky_relu},
    {"leaky_relu", "f32[17]", "slope = -0.5", r_leaky_relu},
    {"prelu", "f32[2, 3, 4, 5] -", "", r_prelu},
    {"prelu", "f32[2, 3] -", "", r_prelu},
    {"prelu", "f32[5] -", "", r_prelu},
    {"prelu", "f32[2, 3, 3] f32[3]", "", r_prelu},
    {"prelu", "f32[2, 3, 4] f32[1]", "", r_prelu},
    {"elu", "f32[17]", "alpha = 0.7", r_elu},
    {"celu", "f32[17]", "alpha = 0.7", r_celu},
    {"selu", "f32[17]", "", r_selu},
    {"gelu", "f32[17]:-4..4", "", r_gelu},
    {"gelu", "f32[3, 5]:-4..4", "form = tanh", r_gelu_tanh},
    {"silu", "f32[17]:-6..6", "", r_silu},
    {"sigmoid", "f32[17]:-6..6", "", r_sigmoid},
    {"sigmoid", "f32[17]:-99..-80", "", r_sigmoid},
    {"tanh", "f32[17]", "", r_tanh},
    {"softplus", "f32[17]:-40..40", "", r_softplus},
    {"softsign", "f32[17]", "", r_softsign},
    {"hardsigmoid", "f32[27]:-5..5", "", r_hardsigmoid},
    {"hardswish", "f32[27]:-5..5", "", r_hardswish},
    {"mish", "f32[27]:-5..5", "", r_mish},
    {"mish", "f32[27]:-99..99", "", r_mish},
    {"relu", "f32[3]:nan..nan", "", r_same},
    {"leaky_relu", "f32[3]:nan..nan", "", r_same},
    {"hardswish", "f32[3]:nan..nan", "", r_same},
    {"clip", "f32[3]:nan..nan", "low = 0, high = 1", r_same},
    {"minimum", "f32[3]:nan..nan f32[3]", "", r_add},
    {"minimum", "f32[3] f32[3]:nan..nan", "", r_add},
    {"maximum", "f32[3]:nan..nan f32[3]", "", r_add},
    {"maximum", "f32[3] f32[3]:nan..nan", "", r_add},
    {0},
};

OP_ERRORS(elementwise) = {
    {"add", "f32[2, 3] f32[4]", "", "add: shapes do not broadcast: [2, 3] and [4]"},
    {"add", "bool[2] bool[2]", "", "add: takes numbers, not bool"},
    {"add", "f32[2]", "", "add: the argument y is missing"},
    {"and", "f32[2] f32[2]", "", "and: takes bool, not f32"},
    {"where", "f32[2] f32[2] f32[2]", "", "where: condition must be bool"},
    {"intdiv", "f32[2] i32[2]", "", "intdiv: takes integers, not f32"},
    {"shift_left", "bool[2] bool[2]", "", "shift_left: takes integers, not bool"},
    {"mod", "bool[2] bool[2]", "", "takes integers, not bool"},
    {"xor", "i32[2] i32[2]", "", "xor: takes bool, not i32"},
    {"add", "u16[2] f32[2]", "", "add: does not take u16[2]: u16 is a storage-only dtype"},
    {"prelu", "f32[2, 3, 4] f32[4]", "",
     "prelu: slope has 4 elements for the 3 channels of f32[2, 3, 4]"},
    {0},
};
