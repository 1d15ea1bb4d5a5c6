/* Random tensors. Numbers come from gplan's own generator, which counts: they hang on the seed that
 * the program is reset with, not on the one that the file asks for. */
#include "frontend/onnx/translate.h"

#include <string.h>

/* Of the sizes of a tensor. */
static const Expr *shape_of(Import *m, const Tensor *x)
{
    const Expr *dim[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dim[i] = size_of(m, x, i);
    return list(m, (size_t)x->rank, dim);
}

static const Expr *uniform(Import *m, const Expr *shape, double low, double high)
{
    return CALL(m, "random_uniform", {shape, "shape"}, {real(m, low), "low"},
                {real(m, high), "high"});
}

static const Expr *draw(Import *m, const Expr *shape)
{
    if (strcmp(row(m), "random_uniform") == 0)
        return uniform(m, shape, attr_float(m, "low", 0), attr_float(m, "high", 1));
    return CALL(m, "random_normal", {shape, "shape"}, {real(m, attr_float(m, "mean", 0)), "mean"},
                {real(m, attr_float(m, "scale", 1)), "std"});
}

static bool random_tensor(Import *m)
{
    size_t count;
    const int64_t *shape = attr_ints(m, "shape", &count);
    if (!shape || count < 1 || count > MAX_RANK)
        return refuse(m, "shape has %zu dimensions", count);
    return result_as(m, 0, draw(m, ints(m, count, shape)), (int)attr_int(m, "dtype", ELEM_FLOAT));
}

static bool random_like(Import *m)
{
    const Tensor *x = given(m, 0);
    if (!x || x->rank < 1)
        return refuse(m, "it needs a tensor with dimensions");
    return result_as(m, 0, draw(m, shape_of(m, x)), (int)attr_int(m, "dtype", x->elem));
}

/* 1 with the given probability. */
static bool bernoulli(Import *m)
{
    const Tensor *x = given(m, 0);
    if (!x || x->rank < 1 || !elem_is_float(x->elem))
        return refuse(m, "it needs a tensor of probabilities");
    const Expr *hit = binary(m, "less", uniform(m, shape_of(m, x), 0, 1), use(m, 0));
    return result_as(m, 0, hit, (int)attr_int(m, "dtype", x->elem));
}

/* The largest of logarithms to which as many Gumbel numbers are added is a class with its
 * probability. */
static bool multinomial(Import *m)
{
    const Tensor *x = given(m, 0);
    int64_t samples = attr_int(m, "sample_size", 1);
    if (!x || x->rank != 2 || samples < 1)
        return refuse(m, "it needs [batch, classes], and at least one sample");
    const Expr *dim[] = {size_of(m, x, 0), integer(m, samples), size_of(m, x, 1)};
    const Expr *u = uniform(m, list(m, 3, dim), 0, 1);
    const Expr *gumbel = negate(m, CALL(m, "log", {negate(m, CALL(m, "log", {u}))}));
    const Expr *logits = CALL(m, "unsqueeze", {use(m, 0)}, {integer(m, 1), "axis"});
    return result_as(m, 0,
                     CALL(m, "argmax", {binary(m, "add", logits, gumbel)}, {integer(m, 2), "axis"}),
                     (int)attr_int(m, "dtype", ELEM_INT32));
}

const Translation onnx_random[] = {
    {"RandomNormal", 1, random_tensor, "random_normal"},
    {"RandomUniform", 1, random_tensor, "random_uniform"},
    {"RandomNormalLike", 1, random_like, "random_normal"},
    {"RandomUniformLike", 1, random_like, "random_uniform"},
    {"Bernoulli", 15, bernoulli},
    {"Multinomial", 7, multinomial},
    {0},
};
