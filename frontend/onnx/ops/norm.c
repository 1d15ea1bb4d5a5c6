/* Normalization. */
#include "frontend/onnx/translate.h"

#include <math.h>
#include <string.h>

/* [C] along axis 1 of a tensor. */
static const Expr *along(Import *m, const Expr *x, const Tensor *channels, int rank)
{
    const Expr *dim[MAX_RANK];
    if (rank < 3)
        return x;
    dim[0] = size_of(m, channels, 0);
    for (int i = 1; i < rank - 1; i++)
        dim[i] = integer(m, 1);
    return reshape(m, x, (size_t)rank - 1, dim);
}

/* With statistics of the batch: what it gives while training, of which all outputs are wanted. */
static bool batch_statistics(Import *m)
{
    const Tensor *x = given(m, 0);
    double eps = attr_float(m, "epsilon", 1e-5), keep = attr_float(m, "momentum", 0.9);
    int64_t axes[MAX_RANK], count = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != 1)
            axes[count++] = i;
    const Tensor *mean =
        state(m, CALL(m, "mean", {use(m, 0)}, {ints(m, (size_t)count, axes), "axis"}));
    const Tensor *var =
        mean ? state(m, CALL(m, "var", {use(m, 0)}, {ints(m, (size_t)count, axes), "axis"})) : NULL;
    if (!var)
        return false;
    const Expr *spread = CALL(m, "sqrt", {binary(m, "add", var->expr, real(m, eps))});
    const Expr *factor =
        along(m, binary(m, "div", weight(m, 1, "scale"), spread), given(m, 1), x->rank);
    const Expr *centred = binary(m, "sub", use(m, 0), along(m, mean->expr, mean, x->rank));
    const Expr *y = binary(m, "add", binary(m, "mul", centred, factor),
                           along(m, weight(m, 2, "bias"), given(m, 2), x->rank));
    const Expr *now[] = {mean->expr, var->expr};
    if (!result(m, 0, y))
        return false;
    for (int i = 0; i < 2; i++)
        if (!result(m, 1 + i,
                    binary(m, "add", binary(m, "mul", use(m, 3 + i), real(m, keep)),
                           binary(m, "mul", now[i], real(m, 1 - keep)))))
            return false;
    return true;
}

static bool batch_norm(Import *m)
{
    const Tensor *x = given(m, 0);
    if (inputs(m) != 5 || !x || x->rank < 2)
        return refuse(m, "it needs five operands, and a tensor with channels");
    if (attr_int(m, "training_mode", 0))
        return batch_statistics(m);
    if (opset(m) < 9 && !attr_int(m, "spatial", 1))
        return refuse(m, "spatial is 0: statistics of each place are not supported");
    if (opset(m) < 7 && !attr_int(m, "is_test", 0))
        return refuse(m, "is_test is 0: the file trains");
    if (wanted(m, 1))
        return refuse(m, "outputs beside the first are for training");
    double eps = attr_float(m, "epsilon", 1e-5), keep = attr_float(m, "momentum", 0.9);
    bool learned = true;
    for (int i = 1; i < 5; i++)
        learned &= given(m, i)->initializer && given(m, i)->rank == 1;
    if (learned)
        return result(m, 0,
                      CALL(m, "batchnorm", {use(m, 0)}, {weight(m, 1, "scale"), "scale"},
                           {weight(m, 2, "bias"), "bias"}, {running(m, 3, "mean"), "mean"},
                           {running(m, 4, "var"), "var"}, {real(m, eps), "eps"},
                           {real(m, rint((1 - keep) * 1e6) / 1e6), "momentum"}));
    const Expr *spread = CALL(m, "sqrt", {binary(m, "add", use(m, 4), real(m, eps))});
    const Expr *factor = along(m, binary(m, "div", use(m, 1), spread), given(m, 1), x->rank);
    const Expr *centred = binary(m, "sub", use(m, 0), along(m, use(m, 3), given(m, 3), x->rank));
    return result(m, 0,
                  binary(m, "add", binary(m, "mul", centred, factor),
                         along(m, use(m, 2), given(m, 2), x->rank)));
}

static bool instance_norm(Import *m)
{
    if (inputs(m) != 3 || !given(m, 0))
        return refuse(m, "it needs three operands");
    return result(m, 0,
                  CALL(m, "instancenorm", {use(m, 0)}, {weight(m, 1, "scale"), "scale"},
                       {weight(m, 2, "bias"), "bias"},
                       {real(m, attr_float(m, "epsilon", 1e-5)), "eps"}));
}

static bool layer_norm(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    if (!x || !given(m, 1) || !take_axis(m, attr_int(m, "axis", -1), x->rank, &axis))
        return refuse(m, "it needs a tensor and a scale");
    double eps = attr_float(m, "epsilon", 1e-5);
    int axes = x->rank - axis;
    int64_t last[MAX_RANK];
    for (int i = 0; i < axes; i++)
        last[i] = axis + i;
    const Expr *over = ints(m, (size_t)axes, last);
    bool plain = given(m, 1)->rank == axes && (!given(m, 2) || given(m, 2)->rank == axes);
    for (int i = 0; plain && i < axes; i++)
        plain = given(m, 1)->dim[i] == x->dim[axis + i];
    bool rms = strcmp(row(m), "rmsnorm") == 0;
    bool statistics = wanted(m, 1) || wanted(m, 2);
    if (plain && !statistics && (rms || given(m, 2)))
        return result(m, 0,
                      CALL(m, row(m), {use(m, 0)}, {weight(m, 1, "scale"), "scale"},
                           {rms ? NULL : weight(m, 2, "bias"), "bias"}, {integer(m, axes), "axes"},
                           {real(m, eps), "eps"}));
    const Tensor *mean =
        state(m, CALL(m, "mean", {use(m, 0)}, {over, "axis"}, {boolean(m, true), "keepdims"}));
    if (!mean)
        return false;
    const Expr *centred = rms ? use(m, 0) : binary(m, "sub", use(m, 0), mean->expr);
    const Tensor *from = state(m, centred);
    if (!from)
        return false;
    const Expr *var = CALL(m, "mean", {CALL(m, "square", {from->expr})}, {over, "axis"},
                           {boolean(m, true), "keepdims"});
    const Tensor *inverse = state(m, CALL(m, "rsqrt", {binary(m, "add", var, real(m, eps))}));
    if (!inverse)
        return false;
    const Expr *y =
        binary(m, "mul", binary(m, "mul", from->expr, inverse->expr), weight(m, 1, "scale"));
    if (given(m, 2))
        y = binary(m, "add", y, weight(m, 2, "bias"));
    return result(m, 0, y) && result(m, 1, mean->expr) && result(m, 2, inverse->expr);
}

static bool group_norm(Import *m)
{
    const Tensor *x = given(m, 0);
    if (inputs(m) != 3 || !x || x->rank < 2)
        return refuse(m, "it needs three operands, and a tensor with channels");
    int64_t groups = attr_int(m, "num_groups", 1);
    const Expr *scale = weight(m, 1, "scale"), *bias = weight(m, 2, "bias");
    if (opset(m) < 21) { /* one scale for each group */
        if (groups < 1 || x->dim[1] % groups || x->open[1] || given(m, 1)->rank != 1)
            return refuse(m, "num_groups does not divide the channels");
        const Expr *both[2] = {integer(m, groups), integer(m, x->dim[1] / groups)};
        const Expr *all[1] = {integer(m, x->dim[1])};
        const Expr **side[2] = {&scale, &bias};
        for (int i = 0; i < 2; i++) {
            const Expr *wide =
                CALL(m, "expand", {CALL(m, "unsqueeze", {*side[i]}, {integer(m, 1), "axis"})},
                     {list(m, 2, both), "shape"});
            *side[i] = reshape(m, wide, 1, all);
        }
    }
    return result(m, 0,
                  CALL(m, "groupnorm", {use(m, 0)}, {scale, "scale"}, {bias, "bias"},
                       {integer(m, groups), "groups"},
                       {real(m, attr_float(m, "epsilon", 1e-5)), "eps"}));
}

/* x / (bias + alpha / size * sum of squares of the channels around)^beta. */
static bool lrn(Import *m)
{
    const Tensor *x = given(m, 0);
    int64_t size = attr_int(m, "size", 1);
    if (!x || x->rank < 2 || size < 1 || size > 1024)
        return refuse(m, "size is %lld", (long long)size);
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    before[1] = (size - 1) / 2;
    after[1] = size - 1 - before[1];
    const Tensor *squares = state(m, CALL(m, "pad", {CALL(m, "square", {use(m, 0)})},
                                          {ints(m, (size_t)x->rank, before), "before"},
                                          {ints(m, (size_t)x->rank, after), "after"}));
    if (!squares || x->open[1])
        return refuse(m, "the channels are a free dimension");
    const Expr *sum = NULL;
    for (int64_t i = 0; i < size; i++) {
        const Expr *one = slice_axis(m, squares->expr, 1, integer(m, i), integer(m, i + x->dim[1]));
        sum = sum ? binary(m, "add", sum, one) : one;
    }
    const Expr *base = binary(
        m, "add", binary(m, "mul", sum, real(m, attr_float(m, "alpha", 1e-4) / (double)size)),
        real(m, attr_float(m, "bias", 1)));
    return result(m, 0,
                  binary(m, "div", use(m, 0),
                         CALL(m, "pow", {base}, {real(m, attr_float(m, "beta", 0.75))})));
}

static bool mean_variance(Import *m)
{
    size_t count;
    int64_t usual[] = {0, 2, 3};
    const int64_t *axes = attr_ints(m, "axes", &count);
    const Expr *over = ints(m, axes ? count : 3, axes ? axes : usual);
    const Expr *mean = CALL(m, "mean", {use(m, 0)}, {over, "axis"}, {boolean(m, true), "keepdims"});
    const Tensor *centred = state(m, binary(m, "sub", use(m, 0), mean));
    if (!centred)
        return false;
    const Expr *var = CALL(m, "mean", {CALL(m, "square", {centred->expr})}, {over, "axis"},
                           {boolean(m, true), "keepdims"});
    return result(
        m, 0,
        binary(m, "div", centred->expr, binary(m, "add", CALL(m, "sqrt", {var}), real(m, 1e-9))));
}

static bool lp_norm(Import *m)
{
    const Tensor *x = given(m, 0);
    int axis;
    if (!x || !take_axis(m, attr_int(m, "axis", -1), x->rank, &axis))
        return false;
    bool one = attr_int(m, "p", 2) == 1;
    const Expr *size = CALL(m, one ? "abs" : "square", {use(m, 0)});
    const Expr *sum =
        CALL(m, "sum", {size}, {integer(m, axis), "axis"}, {boolean(m, true), "keepdims"});
    const Tensor *length = state(m, one ? sum : CALL(m, "sqrt", {sum}));
    if (!length)
        return false;
    const Expr *some = CALL(m, "where", {binary(m, "greater", length->expr, real(m, 0))},
                            {length->expr}, {real(m, 1)}); /* nothing but zeros stays so */
    return result(m, 0, binary(m, "div", use(m, 0), some));
}

/* While it trains in the file itself, rather than by a train statement. */
static bool drop(Import *m, const Tensor *x, double rate)
{
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dim[i] = size_of(m, x, i);
    const Expr *shape = list(m, (size_t)x->rank, dim);
    if (rate >= 1 || x->rank < 1)
        return refuse(m, "ratio is %g", rate);
    const Tensor *kept = state(
        m, binary(m, "greater_equal", CALL(m, "random_uniform", {shape, "shape"}), real(m, rate)));
    if (!kept || (wanted(m, 1) && !result_as(m, 1, kept->expr, ELEM_BOOL)))
        return false;
    return result(m, 0,
                  CALL(m, "where", {kept->expr},
                       {binary(m, "mul", use(m, 0), real(m, 1 / (1 - rate)))}, {real(m, 0)}));
}

static bool dropout(Import *m)
{
    const Tensor *x = given(m, 0);
    int64_t count;
    double rate = attr_float(m, "ratio", 0.5);
    if (!x)
        return refuse(m, "it has no operand");
    if (opset(m) >= 12 && given(m, 1)) {
        const Number *number = known(m, 1, "ratio", &count);
        if (!number)
            return false;
        rate = number->real;
    }
    bool trains = false;
    if (opset(m) >= 12 && given(m, 2)) {
        const Number *number = known(m, 2, "training_mode", &count);
        if (!number)
            return false;
        trains = number->integer;
    }
    if (trains && rate > 0)
        return drop(m, x, rate);
    if (wanted(m, 1) && !result_as(m, 1, binary(m, "equal", use(m, 0), use(m, 0)), ELEM_BOOL))
        return false;
    return rate > 0 && rate < 1 && opset(m) >= 7 && x->dtype == F32
               ? result(m, 0, CALL(m, "dropout", {use(m, 0)}, {real(m, rate), "rate"}))
               : result_same(m, 0, x);
}

const Translation onnx_norm[] = {
    {"BatchNormalization", 1, batch_norm},
    {"InstanceNormalization", 1, instance_norm},
    {"LayerNormalization", 17, layer_norm, "layernorm"},
    {"RMSNormalization", 23, layer_norm, "rmsnorm"},
    {"GroupNormalization", 18, group_norm},
    {"LRN", 1, lrn},
    {"MeanVarianceNormalization", 9, mean_variance},
    {"LpNormalization", 1, lp_norm},
    {"Dropout", 1, dropout},
    {0},
};
