/* Ops by index. Wrong indices are in index_test.c. */
#include "tests/ops/cases.h"

#include <string.h>

/* A negative index counts from the end. */
static int64_t from_start(double index, int64_t n)
{
    return (int64_t)index + (index < 0 ? n : 0);
}

static Tensor pick(const Case *c, const Tensor *x, const Tensor *index, int axis)
{
    int64_t dim[2 * MAX_RANK], outer = 1, inner = 1;
    int rank = 0;
    for (int i = 0; i < axis; i++)
        outer *= dim[rank++] = x->dim[i];
    for (int i = 0; i < index->rank; i++)
        dim[rank++] = index->dim[i];
    for (int i = axis + 1; i < x->rank; i++)
        inner *= dim[rank++] = x->dim[i];
    Tensor y = case_new(c, x->dtype, rank, dim);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < index->count; k++)
            for (int64_t i = 0; i < inner; i++)
                y.at[(o * index->count + k) * inner + i] =
                    x->at[(o * x->dim[axis] + from_start(index->at[k], x->dim[axis])) * inner + i];
    return y;
}

static Tensor gather(const Case *c)
{
    int axis = (int)case_int(c, "axis");
    return pick(c, &c->in[0], &c->in[1], axis < 0 ? axis + c->in[0].rank : axis);
}

static Tensor embedding(const Case *c)
{
    return pick(c, &c->in[1], &c->in[0], 0);
}

static Tensor one_hot(const Case *c)
{
    const Tensor *ids = &c->in[0];
    int64_t dim[MAX_RANK], depth = case_int(c, "depth");
    memcpy(dim, ids->dim, sizeof dim);
    dim[ids->rank] = depth;
    Tensor y = case_new(c, F32, ids->rank + 1, dim);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = ids->at[i / depth] == (double)(i % depth);
    return y;
}

static Tensor scatter_add(const Case *c)
{
    Tensor y = case_like(c, 0);
    int64_t width = y.count / y.dim[0];
    y.dtype = F32;
    memcpy(y.at, c->in[0].at, (size_t)y.count * sizeof *y.at);
    for (int64_t i = 0; i < c->in[2].count; i++)
        y.at[from_start(c->in[1].at[i / width], y.dim[0]) * width + i % width] += c->in[2].at[i];
    return y;
}

/* In the first micro-batch, whatever the sum held. */
static Tensor scatter_begin(const Case *c)
{
    Tensor y = scatter_add(c);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] -= c->in[0].at[i];
    return y;
}

OP_CASES(index) = {
    {"gather", "f32[5] i32[7]:0..4", "", gather},
    {"gather", "f32[5, 3] i32[2, 4]:0..4", "", gather},
    {"gather", "f32[2, 5, 3] i64[4]:0..4", "axis = 1", gather},
    {"gather", "f32[2, 5] i32[1]:0..4", "axis = -1", gather},
    {"gather", "i64[6, 2] i32[3]:0..5", "", gather},
    {"gather", "bool[6, 2] i32[3]:0..5", "", gather},
    {"gather", "f32[2, 5, 3] i64[9]:-5..4", "axis = 1", gather},
    {"gather", "i32[5] i32[9]:-5..-1", "", gather},
    {"gather", "f32[1, 3] i32[]:0..0", "", gather},
    {"embedding", "i32[2, 5]:0..9 f32[10, 3]", "", embedding},
    {"embedding", "i64[4]:0..6 -", "count = 7, size = 5", embedding},
    {"embedding", "i32[3]:0..4 f32[5, 2, 3]", "", embedding},
    {"embedding", "i32[64, 4]:0..99 f32[100, 130]", "", embedding},
    {"embedding", "i32[2, 5]:-4..3 f32[4, 3]", "", embedding},
    {"one_hot", "i32[5]:0..3", "depth = 4", one_hot},
    {"one_hot", "i64[2, 3]:0..0", "depth = 1", one_hot},
    {"one_hot", "i32[]:0..8", "depth = 9", one_hot},
    {"scatter_add", "f32[5, 3] i32[7]:0..4 f32[7, 3]", "", scatter_add},
    {"scatter_add", "f32[4] i64[2, 9]:0..3 f32[2, 9]", "", scatter_add},
    {"scatter_add", "f32[5, 3] i32[9]:-5..4 f32[9, 3]", "", scatter_add},
    {"scatter_add", "f32[5, 3] i32[9]:-5..4 bf16[9, 3]", "", scatter_add},
    {"scatter_add", "f16[5, 3] i32[9]:-5..4 f16[9, 3]", "", scatter_add},
    {"scatter_add", "f32[3, 5, 30] i32[40]:0..2 f32[40, 5, 30]", "", scatter_add},
    {"scatter_accumulate", "f32[5, 3] i32[7]:0..4 f32[7, 3]", "", scatter_add},
    {"scatter_accumulate", "f32[5, 3] i32[7]:0..4 f32[7, 3]", "begins = true", scatter_begin},
    {0},
};

OP_ERRORS(index) = {
    {"gather", "f32[5, 3] f32[2]", "", "indices must be i32 or i64, not f32[2]"},
    {"gather", "f32[5, 3] i32[2]", "axis = 2",
     "axis = 2 is out of range for a tensor of 2 dimensions"},
    {"gather", "f32[1, 1, 1, 1, 1] i32[1, 1, 1, 1, 1]", "", "more than 8 dimensions"},
    {"embedding", "i32[2] -", "", "needs a table, or count and size to make one"},
    {"embedding", "f32[2] f32[4, 5]", "", "indices must be i32 or i64"},
    {"one_hot", "i32[2]", "depth = 0", "depth = 0 must be positive"},
    {"scatter_add", "f32[5, 3] i32[7] f32[7, 2]", "",
     "x f32[5, 3], index i32[7], updates f32[7, 2]"},
    {0},
};
