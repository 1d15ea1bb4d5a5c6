/* Losses, as ONNX has them: classes on axis 1, perhaps weighed, perhaps with a class that does not
 * count. */
#include "frontend/onnx/translate.h"

#include <string.h>

typedef struct {
    const Expr *scores; /* logarithms of probabilities, [N, C, ...] */
    const Tensor *x, *ids;
} Loss;

/* -scores[n, ids[n, ...], ...] for each, and how much each weighs. */
static bool each(Import *m, const Loss *loss, const Expr **losses, const Expr **weights)
{
    const Tensor *x = loss->x, *ids = state(m, use_tensor(m, loss->ids));
    int64_t perm[MAX_RANK];
    if (!ids || x->rank < 2 || x->open[1])
        return refuse(m, "its operands have no axis of classes");
    for (int i = 0; i < x->rank; i++)
        perm[i] = i == 0 ? 0 : i < x->rank - 1 ? i + 1 : 1;
    bool ignores = has_attr(m, "ignore_index");
    const Expr *left_out = NULL, *at = ids->expr;
    if (ignores) {
        left_out = binary(m, "equal", ids->expr, integer(m, attr_int(m, "ignore_index", 0)));
        const Tensor *safe =
            state(m, CALL(m, "where", {left_out}, {integer(m, 0), "x"}, {ids->expr, "y"}));
        if (!safe)
            return false;
        at = safe->expr;
    }
    const Expr *last =
        CALL(m, "transpose", {loss->scores}, {ints(m, (size_t)x->rank, perm), "perm"});
    const Expr *hot = CALL(m, "one_hot", {at}, {integer(m, x->dim[1]), "depth"});
    const Expr *picked = CALL(m, "sum", {binary(m, "mul", last, hot)}, {integer(m, -1), "axis"});
    *weights = NULL;
    if (given(m, 2))
        *weights = CALL(m, "gather", {use(m, 2), "x"}, {at, "index"});
    if (ignores) {
        const Expr *one = *weights ? *weights : real(m, 1);
        *weights = CALL(m, "where", {left_out}, {real(m, 0), "x"}, {one, "y"});
        if (!given(m, 2)) /* two numbers: the condition gives the shape */
            *weights = binary(m, "sub", real(m, 1), cast(m, left_out, F32));
    }
    *losses = negate(m, picked);
    return true;
}

static bool reduce(Import *m, const Loss *loss)
{
    const char *how = attr_word(m, "reduction", "mean");
    const Expr *losses = NULL, *weights = NULL;
    if (!each(m, loss, &losses, &weights))
        return false;
    const Tensor *weighs = NULL;
    if (weights && !(weighs = state(m, weights)))
        return false;
    if (weighs)
        losses = binary(m, "mul", losses, weighs->expr);
    if (strcmp(how, "none") == 0)
        return result_as(m, 0, losses, loss->x->elem);
    if (strcmp(how, "sum") == 0)
        return result_as(m, 0, CALL(m, "sum", {losses}), loss->x->elem);
    if (strcmp(how, "mean") != 0)
        return refuse(m, "reduction is %s", how);
    const Expr *mean =
        weighs ? binary(m, "div", CALL(m, "sum", {losses}), CALL(m, "sum", {weighs->expr}))
               : CALL(m, "mean", {losses});
    return result_as(m, 0, mean, loss->x->elem);
}

static bool nll(Import *m)
{
    if (!given(m, 0) || !given(m, 1))
        return refuse(m, "it needs scores and classes");
    return reduce(m, &(Loss){use(m, 0), given(m, 0), given(m, 1)});
}

static bool softmax_loss(Import *m)
{
    if (!given(m, 0) || !given(m, 1))
        return refuse(m, "it needs scores and classes");
    const Tensor *log = state(m, CALL(m, "log_softmax", {use(m, 0)}, {integer(m, 1), "axis"}));
    return log && reduce(m, &(Loss){log->expr, given(m, 0), given(m, 1)}) &&
           result_as(m, 1, log->expr, given(m, 0)->elem);
}

const Translation onnx_loss[] = {
    {"NegativeLogLikelihoodLoss", 12, nll},
    {"SoftmaxCrossEntropyLoss", 12, softmax_loss},
    {0},
};
