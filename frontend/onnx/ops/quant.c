/* Numbers quantised by a scale and a zero point, and products of them.
 *
 * A product of integers is computed in f32, in parts whose sums are below 2^24: each is exact, and
 * they are added as integers. */
#include "frontend/onnx/ops/quant.h"
#include "frontend/onnx/ops/window.h"

#include <string.h>

enum { EXACT_TERMS = 256 }; /* 256 * 255 * 255 < 2^24 */

/* A scale or a zero point of `rank` dims along an axis: one number is that for all. */
static const Expr *along(Import *m, const Tensor *tensor, const Expr *x, int rank, int axis)
{
    const Expr *dim[MAX_RANK];
    if (tensor->rank == 0)
        return x;
    if (tensor->rank == 1 && tensor->dim[0] == 1)
        return CALL(m, "squeeze", {x});
    for (int i = 0; i < rank; i++)
        dim[i] = integer(m, i == axis ? tensor->dim[0] : 1);
    return tensor->rank == 1 && rank > 1 ? reshape(m, x, (size_t)rank, dim) : x;
}

static const Expr *operand(Import *m, int i, int rank, int axis)
{
    const Tensor *tensor = given(m, i); /* a zero point is cast, which no bare number can be */
    return along(m, tensor, tensor->dtype == F32 ? use(m, i) : use_declared(m, i), rank, axis);
}

static bool range_of(Import *m, int elem, double *low, double *high)
{
    *low = elem == ELEM_INT8 ? -128 : elem == ELEM_INT16 ? -32768 : 0;
    *high = elem == ELEM_INT8     ? 127
            : elem == ELEM_UINT8  ? 255
            : elem == ELEM_INT16  ? 32767
            : elem == ELEM_UINT16 ? 65535
                                  : 0;
    return *high > 0 || refuse(m, "quantised numbers of type %s", elem_name(elem));
}

/* round(x) + zero, kept within the type. */
static bool saturate(Import *m, int output, const Expr *x, const Expr *zero, int elem)
{
    double low, high;
    if (!range_of(m, elem, &low, &high))
        return false;
    x = CALL(m, "round", {x});
    if (zero)
        x = binary(m, "add", x, cast(m, zero, F32));
    x = CALL(m, "clip", {x}, {real(m, low), "low"}, {real(m, high), "high"});
    return result_as(m, output, cast(m, x, elem_dtype(elem)), elem);
}

static bool take_scale(Import *m, int *axis)
{
    const Tensor *x = given(m, 0), *scale = given(m, 1);
    *axis = 0;
    if (!x || !scale)
        return refuse(m, "it needs a tensor and a scale");
    if (scale->rank > 1)
        return refuse(m, "scales in blocks are not known");
    return scale->rank == 0 || scale->dim[0] == 1 ||
           take_axis(m, attr_int(m, "axis", 1), x->rank, axis);
}

static bool quantize(Import *m)
{
    int axis;
    if (!take_scale(m, &axis))
        return false;
    int rank = given(m, 0)->rank;
    bool has_zero = inputs(m) > 2 && given(m, 2);
    const Expr *zero = has_zero ? operand(m, 2, rank, axis) : NULL;
    const Expr *x = given(m, 0)->dtype == F32 ? use(m, 0) : cast(m, use_declared(m, 0), F32);
    return saturate(m, 0, binary(m, "div", x, operand(m, 1, rank, axis)), zero,
                    has_zero ? given(m, 2)->elem : ELEM_UINT8);
}

/* x - zero, whole numbers as f32. */
static const Expr *shifted(Import *m, const Expr *x, const Expr *zero)
{
    x = cast(m, x, F32);
    return zero ? binary(m, "sub", x, cast(m, zero, F32)) : x;
}

static bool dequantize(Import *m)
{
    int axis;
    if (!take_scale(m, &axis))
        return false;
    int rank = given(m, 0)->rank;
    const Expr *zero = inputs(m) > 2 && given(m, 2) ? operand(m, 2, rank, axis) : NULL;
    const Expr *x = shifted(m, use_declared(m, 0), zero);
    return result_as(m, 0, binary(m, "mul", x, operand(m, 1, rank, axis)), given(m, 1)->elem);
}

/* The scale and the zero point that the numbers at hand ask for; where all are 0, ONNX Runtime's
 * scale of 1. */
static bool take_range(Import *m, const Expr *x, const Tensor **scale, const Tensor **zero)
{
    const Tensor *low = state(m, CALL(m, "minimum", {CALL(m, "min", {x})}, {real(m, 0)}));
    const Tensor *high = state(m, CALL(m, "maximum", {CALL(m, "max", {x})}, {real(m, 0)}));
    const Tensor *width = low && high ? state(m, binary(m, "sub", high->expr, low->expr)) : NULL;
    if (!width)
        return false;
    const Expr *some = binary(m, "greater", width->expr, real(m, 0));
    *scale = state(
        m, CALL(m, "where", {some}, {binary(m, "div", width->expr, real(m, 255))}, {real(m, 1)}));
    if (!*scale)
        return false;
    const Expr *at = CALL(m, "round", {binary(m, "div", negate(m, low->expr), (*scale)->expr)});
    *zero = state(m, CALL(m, "clip", {at}, {real(m, 0), "low"}, {real(m, 255), "high"}));
    return *zero != NULL;
}

static bool quantize_dynamically(Import *m)
{
    const Expr *x = use(m, 0);
    const Tensor *scale, *zero;
    if (!x)
        return refuse(m, "it has no operand");
    if (!take_range(m, x, &scale, &zero) ||
        !saturate(m, 0, binary(m, "div", x, scale->expr), zero->expr, ELEM_UINT8))
        return false;
    return (!wanted(m, 1) || result_as(m, 1, scale->expr, ELEM_FLOAT)) &&
           (!wanted(m, 2) || result_as(m, 2, cast(m, zero->expr, U8), ELEM_UINT8));
}

const Expr *quantised_and_back(Import *m, const Expr *x)
{
    const Tensor *scale, *zero, *given_x = state(m, x);
    if (!given_x || !take_range(m, given_x->expr, &scale, &zero))
        return NULL;
    const Expr *steps = CALL(m, "round", {binary(m, "div", given_x->expr, scale->expr)});
    const Expr *kept = CALL(m, "clip", {binary(m, "add", steps, zero->expr)}, {real(m, 0), "low"},
                            {real(m, 255), "high"});
    return binary(m, "mul", binary(m, "sub", kept, zero->expr), scale->expr);
}

/* ---- Products ------------------------------------------------------------------------------- */

/* The sum of parts; NULL with a message. */
static const Expr *add_part(Import *m, const Expr *sum, const Expr *part, Dtype dtype)
{
    const Tensor *one = state(m, dtype == F32 ? part : cast(m, part, dtype));
    return !one ? NULL : sum ? binary(m, "add", sum, one->expr) : one->expr;
}

/* a @ b of whole numbers in f32, exactly; i32. */
static const Expr *exact_matmul(Import *m, const Expr *a, const Expr *b)
{
    const Tensor *left = state(m, a), *right = state(m, b);
    if (!left || !right)
        return NULL;
    int64_t depth = left->dim[left->rank - 1];
    if (depth <= EXACT_TERMS)
        return cast(m, binary(m, "matmul", left->expr, right->expr), I32);
    const Expr *sum = NULL;
    for (int64_t at = 0; at < depth; at += EXACT_TERMS) {
        const Expr *from = integer(m, at);
        const Expr *to = integer(m, at + EXACT_TERMS < depth ? at + EXACT_TERMS : depth);
        int along_b = right->rank > 1 ? right->rank - 2 : 0;
        const Expr *one = binary(m, "matmul", slice_axis(m, left->expr, left->rank - 1, from, to),
                                 slice_axis(m, right->expr, along_b, from, to));
        if (!(sum = add_part(m, sum, one, I32)))
            return NULL;
    }
    return sum;
}

/* Input i for the rows of a left operand, or the columns of a right one. */
static const Expr *for_rows(Import *m, int i, const Tensor *of)
{
    return i < inputs(m) && given(m, i) ? operand(m, i, of->rank, of->rank - 2) : NULL;
}

static const Expr *for_columns(Import *m, int i, const Tensor *of)
{
    return i < inputs(m) && given(m, i) ? operand(m, i, of->rank, of->rank - 1) : NULL;
}

static bool matmul_integer(Import *m)
{
    const Tensor *a = given(m, 0), *b = given(m, 1);
    if (!a || !b)
        return refuse(m, "it needs two operands");
    const Expr *sum = exact_matmul(m, shifted(m, use(m, 0), for_rows(m, 2, a)),
                                   shifted(m, use(m, 1), for_columns(m, 3, b)));
    return sum && result_as(m, 0, sum, ELEM_INT32);
}

/* Inputs: a, its scale and zero point, b, likewise, the result's. */
static bool qlinear_matmul(Import *m)
{
    for (int i = 0; i < 8; i++)
        if (i >= inputs(m) || !given(m, i))
            return refuse(m, "input %d is missing", i);
    const Tensor *a = given(m, 0), *b = given(m, 3);
    const Expr *sum = exact_matmul(m, shifted(m, use(m, 0), for_rows(m, 2, a)),
                                   shifted(m, use(m, 3), for_columns(m, 5, b)));
    if (!sum)
        return false;
    const Expr *scale = binary(m, "mul", for_rows(m, 1, a), for_columns(m, 4, b));
    scale = binary(m, "div", scale, operand(m, 6, a->rank, a->rank - 2));
    return saturate(m, 0, binary(m, "mul", cast(m, sum, F32), scale),
                    operand(m, 7, a->rank, a->rank - 2), given(m, 7)->elem);
}

/* ---- Convolutions --------------------------------------------------------------------------- */

/* x * w of whole numbers in f32, in parts of the channels; i32. */
static const Expr *exact_conv(Import *m, int input, int filter, const Expr *x, const Expr *w)
{
    const Tensor *of = given(m, input), *by = given(m, filter);
    Window window = {.axes = of->rank - 2};
    int64_t groups = attr_int(m, "group", 1), terms = 1;
    if (window.axes != 2 || by->rank != 4) {
        refuse(m, "a quantised convolution on %d dimensions", of->rank);
        return NULL;
    }
    for (int i = 0; i < 2; i++)
        terms *= window.kernel[i] = by->dim[2 + i];
    if (!read_window(m, of, &window))
        return NULL;
    int64_t channels = by->dim[1], most = terms > EXACT_TERMS ? 0 : EXACT_TERMS / terms;
    if (most == 0 || (groups > 1 && channels > most)) {
        refuse(m, "a quantised convolution of %lld terms in a group",
               (long long)(channels * terms));
        return NULL;
    }
    const Tensor *left = state(m, x), *right = state(m, w);
    const Expr *sum = NULL;
    for (int64_t at = 0; left && right && at < channels; at += most) {
        bool all = channels <= most;
        const Expr *from = integer(m, at);
        const Expr *to = integer(m, at + most < channels ? at + most : channels);
        const Expr *one =
            CALL(m, "conv2d", {all ? left->expr : slice_axis(m, left->expr, 1, from, to)},
                 {all ? right->expr : slice_axis(m, right->expr, 1, from, to), "w"},
                 {boolean(m, false), "bias"}, {window_ints(m, &window, window.stride, 1), "stride"},
                 {window_pads(m, &window), "pad"},
                 {window_ints(m, &window, window.dilation, 1), "dilation"},
                 {groups == 1 ? NULL : integer(m, groups), "groups"});
        if (!(sum = add_part(m, sum, one, I32)))
            return NULL;
    }
    return sum;
}

static bool conv_integer(Import *m)
{
    const Tensor *x = given(m, 0), *w = given(m, 1);
    if (!x || !w)
        return refuse(m, "it needs a tensor and a weight");
    const Expr *zero[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (inputs(m) > 2 + i && given(m, 2 + i))
            zero[i] = operand(m, 2 + i, i == 0 ? x->rank : w->rank, 0);
    const Expr *sum =
        exact_conv(m, 0, 1, shifted(m, use(m, 0), zero[0]), shifted(m, use(m, 1), zero[1]));
    return sum && result_as(m, 0, sum, ELEM_INT32);
}

/* Inputs: x, its scale and zero point, w, likewise, the result's, a bias. */
static bool qlinear_conv(Import *m)
{
    for (int i = 0; i < 8; i++)
        if (i >= inputs(m) || !given(m, i))
            return refuse(m, "input %d is missing", i);
    const Tensor *x = given(m, 0), *w = given(m, 3);
    const Expr *sum = exact_conv(m, 0, 3, shifted(m, use(m, 0), operand(m, 2, x->rank, 1)),
                                 shifted(m, use(m, 3), operand(m, 5, w->rank, 0)));
    if (!sum)
        return false;
    if (inputs(m) > 8 && given(m, 8)) {
        const Tensor whole = {.rank = 1, .dim = {w->dim[0]}};
        sum = binary(m, "add", sum, along(m, &whole, use(m, 8), x->rank, 1));
    }
    const Expr *scale = binary(m, "mul", operand(m, 1, x->rank, 1), operand(m, 4, x->rank, 1));
    scale = binary(m, "div", scale, operand(m, 6, x->rank, 1));
    return saturate(m, 0, binary(m, "mul", cast(m, sum, F32), scale), operand(m, 7, x->rank, 1),
                    given(m, 7)->elem);
}

const Translation onnx_quant[] = {
    {"QuantizeLinear", 10, quantize},
    {"DequantizeLinear", 10, dequantize},
    {"DynamicQuantizeLinear", 11, quantize_dynamically},
    {"MatMulInteger", 10, matmul_integer},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"ConvInteger", 10, conv_integer},
    {"QLinearConv", 10, qlinear_conv},
    {0},
};
