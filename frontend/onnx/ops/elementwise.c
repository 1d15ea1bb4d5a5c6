/* Ops on each element. Most are one op of the language; integers that gplan holds in a wider dtype
 * are cut to their own width where they may have left it. */
#include "frontend/onnx/ops/elementwise.h"

#include <math.h>
#include <string.h>

const Expr *cut_to(Import *m, const Expr *x, int elem)
{
    Dtype held = elem_dtype(elem), own = elem_stored(elem);
    if (elem == ELEM_INT16) {
        const Tensor *bits = state(m, cast(m, cast(m, x, U16), I32));
        if (!bits || !bits->expr)
            return x;
        const Expr *high = cast(m, binary(m, "greater", bits->expr, integer(m, 32767)), I32);
        return binary(m, "sub", bits->expr, binary(m, "mul", high, integer(m, 65536)));
    }
    return held == own || elem_is_float(elem) ? x : cast(m, cast(m, x, own), held);
}

static bool one(Import *m)
{
    const Tensor *x = given(m, 0);
    if (!x)
        return refuse(m, "it has no operand");
    return result_as(m, 0, cut_to(m, CALL(m, row(m), {use_declared(m, 0)}), x->elem), x->elem);
}

/* Floor, Ceil, Round: of integers nothing is to be done. */
static bool whole(Import *m)
{
    const Tensor *x = given(m, 0);
    return x && !elem_is_float(x->elem) ? result_same(m, 0, x) : one(m);
}

static bool is_one_number(const Tensor *x)
{
    bool one = x->data || x->number;
    for (int i = 0; i < x->rank; i++)
        one = one && x->dim[i] == 1;
    return one && (!x->initializer || !elem_is_float(x->elem));
}

/* A number beside a tensor that has its dims already may be written as one, with no dims of its
 * own. */
static const Expr *operand(Import *m, int i, int other)
{
    const Tensor *x = given(m, i), *y = given(m, other);
    if (!x->expr && y->expr && x->rank <= y->rank && is_one_number(x)) {
        const Number *number = numbers(m, x);
        if (number && !isnan(number->real))
            return number_expr(m, number, x->dtype);
    }
    return use(m, i);
}

/* Whether a tensor is a constant along the last axes of the other: what a layer adds or scales by.
 */
static bool is_learned(const Tensor *x, const Tensor *other)
{
    return x->initializer && elem_is_float(x->elem) && x->rank >= 1 && x->rank <= other->rank &&
           x->data && x->data->count > 1;
}

static const Expr *learned(Import *m, int i, int other)
{
    const Tensor *x = given(m, i);
    bool adds = strcmp(row(m), "add") == 0, scales = strcmp(row(m), "mul") == 0;
    if ((adds || scales) && is_learned(x, given(m, other)))
        return weight(m, i, adds ? "bias" : "scale");
    return operand(m, i, other);
}

/* Files of before opset 7: b is aligned with an axis of a, and is broadcast from there. */
static const Expr *at_axis(Import *m)
{
    int axis;
    const Tensor *a = given(m, 0), *b = given(m, 1);
    if (opset(m) >= 7 || !has_attr(m, "axis") || !attr_int(m, "broadcast", 0))
        return learned(m, 1, 0);
    if (!take_axis(m, attr_int(m, "axis", 0), a->rank, &axis))
        return use(m, 1);
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < a->rank - axis; i++)
        dim[i] = i < b->rank ? size_of(m, b, i) : integer(m, 1);
    return reshape(m, weight(m, 1, "bias"), (size_t)(a->rank - axis), dim);
}

static bool two_given(Import *m)
{
    return (given(m, 0) && given(m, 1)) || refuse(m, "it needs two operands");
}

static bool both(Import *m)
{
    if (!two_given(m))
        return false;
    const Expr *left = learned(m, 0, 1), *right = at_axis(m);
    int elem = given(m, 0)->elem;
    return result_as(m, 0, cut_to(m, binary(m, row(m), left, right), elem), elem);
}

static bool divide(Import *m)
{
    if (!two_given(m))
        return false;
    if (elem_is_float(given(m, 0)->elem))
        return both(m);
    const Expr *left = operand(m, 0, 1), *right = operand(m, 1, 0);
    return result_as(m, 0, CALL(m, "intdiv", {left}, {right}), given(m, 0)->elem);
}

static bool shift(Import *m)
{
    bool left = strcmp(attr_word(m, "direction", "LEFT"), "LEFT") == 0;
    if (!two_given(m))
        return false;
    int elem = given(m, 0)->elem;
    const Expr *y = CALL(m, left ? "shift_left" : "shift_right", {use(m, 0)}, {use(m, 1)});
    return result_as(m, 0, cut_to(m, y, elem), elem);
}

static bool mod(Import *m)
{
    if (!two_given(m))
        return false;
    const char *op = attr_int(m, "fmod", 0) ? "fmod" : "mod";
    const Expr *left = operand(m, 0, 1), *right = operand(m, 1, 0);
    return result_as(m, 0, CALL(m, op, {left}, {right}), given(m, 0)->elem);
}

static bool compare(Import *m)
{
    if (!two_given(m))
        return false;
    const Expr *left = operand(m, 0, 1);
    return result_as(m, 0, binary(m, row(m), left, opset(m) < 7 ? at_axis(m) : operand(m, 1, 0)),
                     ELEM_BOOL);
}

/* Any number of operands: Sum, Max, Min, Mean. */
static bool several(Import *m)
{
    if (!given(m, 0))
        return refuse(m, "it has no operand");
    const Expr *all = use(m, 0);
    int elem = given(m, 0)->elem;
    for (int i = 1; i < inputs(m); i++)
        all = binary(m, row(m), all, use(m, i));
    if (inputs(m) == 1)
        return result_same(m, 0, given(m, 0));
    return result_as(m, 0, cut_to(m, all, elem), elem);
}

static bool mean(Import *m)
{
    const Expr *all = use(m, 0);
    for (int i = 1; i < inputs(m); i++)
        all = binary(m, "add", all, use(m, i));
    return result(m, 0, binary(m, "div", all, real(m, inputs(m))));
}

static bool identity(Import *m)
{
    return given(m, 0) ? result_same(m, 0, given(m, 0)) : refuse(m, "it has no operand");
}

static bool where(Import *m)
{
    if (inputs(m) != 3 || !given(m, 0) || !given(m, 1) || !given(m, 2))
        return refuse(m, "it needs three operands");
    const Expr *x = operand(m, 1, 0), *y = operand(m, 2, 0);
    return result_as(m, 0, CALL(m, "where", {use(m, 0), "condition"}, {x, "x"}, {y, "y"}),
                     given(m, 1)->elem);
}

/* ---- Activations ---------------------------------------------------------------------------- */

static bool with_alpha(Import *m)
{
    bool leaky = strcmp(row(m), "leaky_relu") == 0;
    double alpha = attr_float(m, "alpha", leaky ? 0.01 : 1.0);
    return result(m, 0, CALL(m, row(m), {use(m, 0)}, {real(m, alpha), leaky ? "slope" : "alpha"}));
}

static bool selu(Import *m)
{
    double alpha = attr_float(m, "alpha", 1.67326319217681884765625);
    double gamma = attr_float(m, "gamma", 1.05070102214813232421875);
    const Expr *elu = CALL(m, "elu", {use(m, 0)}, {real(m, alpha), "alpha"});
    return result(m, 0, binary(m, "mul", elu, real(m, gamma)));
}

static bool hard_sigmoid(Import *m)
{
    double alpha = attr_float(m, "alpha", 0.2), beta = attr_float(m, "beta", 0.5);
    const Expr *line = binary(m, "add", binary(m, "mul", use(m, 0), real(m, alpha)), real(m, beta));
    return result(m, 0, CALL(m, "clip", {line}, {real(m, 0), "low"}, {real(m, 1), "high"}));
}

static bool thresholded_relu(Import *m)
{
    const Expr *x = use(m, 0);
    const Expr *above = binary(m, "greater", x, real(m, attr_float(m, "alpha", 1)));
    return result(m, 0, CALL(m, "where", {above}, {x}, {real(m, 0), "y"}));
}

static bool shrink(Import *m)
{
    double lambda = attr_float(m, "lambd", 0.5), bias = attr_float(m, "bias", 0);
    const Tensor *given_x = given(m, 0);
    const Expr *x = use(m, 0);
    if (!elem_is_float(given_x->elem))
        x = cast(m, x, F32);
    const Expr *inner = CALL(m, "where", {binary(m, "greater", x, real(m, lambda))},
                             {binary(m, "sub", x, real(m, bias)), "x"}, {real(m, 0), "y"});
    return result_as(m, 0,
                     CALL(m, "where", {binary(m, "less", x, real(m, -lambda))},
                          {binary(m, "add", x, real(m, bias)), "x"}, {inner, "y"}),
                     given_x->elem);
}

static bool gelu(Import *m)
{
    bool tanh = strcmp(attr_word(m, "approximate", "none"), "tanh") == 0;
    return result(m, 0, CALL(m, "gelu", {use(m, 0)}, {word(m, tanh ? "tanh" : "exact"), "form"}));
}

static bool swish(Import *m)
{
    double alpha = attr_float(m, "alpha", 1);
    const Expr *x = use(m, 0);
    if (alpha == 1)
        return result(m, 0, CALL(m, "silu", {x}));
    const Expr *gate = CALL(m, "sigmoid", {binary(m, "mul", x, real(m, alpha))});
    return result(m, 0, binary(m, "mul", x, gate));
}

static bool prelu(Import *m)
{
    if (!two_given(m))
        return false;
    const Expr *x = use(m, 0), *slope = weight(m, 1, "slope");
    const Tensor *a = given(m, 0), *b = given(m, 1);
    if (opset(m) < 9 && b->rank == 1 && a->rank > 2) { /* one for each channel */
        const Expr *dim[MAX_RANK];
        dim[0] = size_of(m, b, 0);
        for (int i = 1; i < a->rank - 1; i++)
            dim[i] = integer(m, 1);
        slope = reshape(m, slope, (size_t)a->rank - 1, dim);
    }
    const Expr *below = binary(m, "mul", x, slope);
    return result(m, 0,
                  CALL(m, "where", {binary(m, "less", x, zero_like(m, given(m, 0)))}, {below, "x"},
                       {x, "y"}));
}

static bool clip_older(Import *m)
{
    double low = attr_float(m, "min", -3.4028234663852886e38);
    double high = attr_float(m, "max", 3.4028234663852886e38);
    return result(m, 0,
                  CALL(m, "clip", {use(m, 0)}, {real(m, low), "low"}, {real(m, high), "high"}));
}

static bool clip(Import *m)
{
    const Expr *x = use(m, 0);
    if (!given(m, 1) && !given(m, 2))
        return result_same(m, 0, given(m, 0));
    if (given(m, 1))
        x = CALL(m, "maximum", {x}, {use(m, 1)});
    if (given(m, 2))
        x = CALL(m, "minimum", {x}, {use(m, 2)});
    return result_as(m, 0, x, given(m, 0)->elem);
}

/* ---- Types ---------------------------------------------------------------------------------- */

/* A real that is stored wider is rounded as its own type would. */
static bool cast_to(Import *m, int to)
{
    const Tensor *x = given(m, 0);
    if (!x)
        return refuse(m, "it has no operand");
    if (elem_dtype(to) == DTYPES)
        return refuse(m, "gplan does not compute in %s", elem_name(to));
    const Expr *y = use_declared(m, 0);
    bool rounds = to == ELEM_FLOAT16 || to == ELEM_BFLOAT16;
    if (x->elem == to || (x->dtype == elem_dtype(to) && elem_is_float(to) && !rounds)) {
        Tensor *same = tensor_copy(m, x);
        same->elem = to;
        return result_same(m, 0, same);
    }
    if (rounds)
        y = cast(m, cast(m, y, elem_stored(to)), F32);
    else if (to == ELEM_INT16 || to == ELEM_BOOL || elem_stored(to) == elem_dtype(to))
        y = to == ELEM_INT16 ? cut_to(m, cast(m, y, I32), to) : cast(m, y, elem_dtype(to));
    else
        y = cast(m, cast(m, y, elem_stored(to)), elem_dtype(to));
    return result_as(m, 0, y, to);
}

static bool cast_node(Import *m)
{
    return cast_to(m, (int)attr_int(m, "to", ELEM_NONE));
}

static bool cast_like(Import *m)
{
    return two_given(m) && cast_to(m, given(m, 1)->elem);
}

static bool is_nan(Import *m)
{
    return result_as(m, 0, binary(m, "not_equal", use(m, 0), use(m, 0)), ELEM_BOOL);
}

static bool is_inf(Import *m)
{
    bool low = attr_int(m, "detect_negative", 1), high = attr_int(m, "detect_positive", 1);
    const double most = 3.4028234663852886e38;
    const Expr *x = low && high ? CALL(m, "abs", {use(m, 0)}) : use(m, 0);
    if (!low && !high) /* nothing is larger than itself */
        return result_as(m, 0, binary(m, "greater", x, x), ELEM_BOOL);
    return result_as(
        m, 0, high ? binary(m, "greater", x, real(m, most)) : binary(m, "less", x, real(m, -most)),
        ELEM_BOOL);
}

const Translation onnx_elementwise[] = {
    {"Abs", 1, one, "abs"},
    {"Neg", 1, one, "neg"},
    {"Reciprocal", 1, one, "reciprocal"},
    {"Floor", 1, whole, "floor"},
    {"Ceil", 1, whole, "ceil"},
    {"Round", 1, whole, "round"},
    {"Sqrt", 1, one, "sqrt"},
    {"Exp", 1, one, "exp"},
    {"Log", 1, one, "log"},
    {"Sin", 1, one, "sin"},
    {"Cos", 1, one, "cos"},
    {"Tanh", 1, one, "tanh"},
    {"Erf", 1, one, "erf"},
    {"Tan", 1, one, "tan"},
    {"Asin", 1, one, "asin"},
    {"Acos", 1, one, "acos"},
    {"Atan", 1, one, "atan"},
    {"Sinh", 1, one, "sinh"},
    {"Cosh", 1, one, "cosh"},
    {"Asinh", 1, one, "asinh"},
    {"Acosh", 1, one, "acosh"},
    {"Atanh", 1, one, "atanh"},
    {"BitwiseNot", 1, one, "bit_not"},
    {"BitwiseAnd", 1, both, "bit_and"},
    {"BitwiseOr", 1, both, "bit_or"},
    {"BitwiseXor", 1, both, "bit_xor"},
    {"BitShift", 1, shift},
    {"Mod", 1, mod},
    {"Sign", 1, one, "sign"},
    {"Not", 1, one, "not"},
    {"Relu", 1, one, "relu"},
    {"Sigmoid", 1, one, "sigmoid"},
    {"Softplus", 1, one, "softplus"},
    {"Softsign", 1, one, "softsign"},
    {"Mish", 1, one, "mish"},
    {"HardSwish", 1, one, "hardswish"},
    {"Add", 1, both, "add"},
    {"Sub", 1, both, "sub"},
    {"Mul", 1, both, "mul"},
    {"Div", 1, divide, "div"},
    {"Pow", 1, both, "pow"},
    {"And", 1, compare, "and"},
    {"Or", 1, compare, "or"},
    {"Xor", 1, compare, "not_equal"},
    {"Equal", 1, compare, "equal"},
    {"Less", 1, compare, "less"},
    {"LessOrEqual", 1, compare, "less_equal"},
    {"Greater", 1, compare, "greater"},
    {"GreaterOrEqual", 1, compare, "greater_equal"},
    {"Sum", 1, several, "add"},
    {"Max", 1, several, "maximum"},
    {"Min", 1, several, "minimum"},
    {"Mean", 1, mean},
    {"Where", 1, where},
    {"Identity", 1, identity},
    {"LeakyRelu", 1, with_alpha, "leaky_relu"},
    {"Elu", 1, with_alpha, "elu"},
    {"Celu", 1, with_alpha, "celu"},
    {"Selu", 1, selu},
    {"HardSigmoid", 1, hard_sigmoid},
    {"ThresholdedRelu", 1, thresholded_relu},
    {"Shrink", 1, shrink},
    {"Gelu", 1, gelu},
    {"Swish", 1, swish},
    {"PRelu", 1, prelu},
    {"Clip", 1, clip_older},
    {"Clip", 11, clip},
    {"Cast", 1, cast_node},
    {"CastLike", 1, cast_like},
    {"IsNaN", 1, is_nan},
    {"IsInf", 1, is_inf},
    {0},
};
