/* Matrix products against sums written out. */
#include "tests/ops/cases.h"

/* Dim d of the batch of a tensor, counted from the left of a batch of `batch` dims. */
static int64_t batch_dim(const Tensor *t, int d, int batch)
{
    int own = t->rank >= 2 ? t->rank - 2 : 0;
    return d < batch - own ? 1 : t->dim[d - (batch - own)];
}

/* Where matrix number `index` of the batch begins in a dense tensor. */
static const double *matrix_at(const Tensor *t, int batch, const int64_t *dim, int64_t index)
{
    int64_t place[MAX_RANK] = {0}, at = 0;
    for (int d = batch - 1; d >= 0; d--) {
        place[d] = index % dim[d];
        index /= dim[d];
    }
    for (int d = 0; d < batch; d++) {
        int64_t own = batch_dim(t, d, batch);
        at = at * own + (own == 1 ? 0 : place[d]);
    }
    int64_t size = t->rank == 1 ? t->dim[0] : t->dim[t->rank - 1] * t->dim[t->rank - 2];
    return t->at + at * size;
}

static Tensor product(const Case *c)
{
    const Tensor *a = &c->in[0], *b = &c->in[1];
    int64_t k = a->dim[a->rank - 1], m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
    int64_t n = b->rank > 1 ? b->dim[b->rank - 1] : 1, dim[MAX_RANK], batches = 1;
    int batch = (a->rank > b->rank ? a->rank : b->rank) - 2;
    batch = batch < 0 ? 0 : batch;
    for (int d = 0; d < batch; d++) {
        int64_t x = batch_dim(a, d, batch), y = batch_dim(b, d, batch);
        dim[d] = x > y ? x : y;
        batches *= dim[d];
    }
    int rank = batch;
    if (a->rank > 1)
        dim[rank++] = m;
    if (b->rank > 1)
        dim[rank++] = n;
    Tensor y = case_new(c, F32, rank, dim);
    double *out = y.at;
    for (int64_t i = 0; i < batches; i++) {
        const double *x = matrix_at(a, batch, dim, i), *w = matrix_at(b, batch, dim, i);
        for (int64_t row = 0; row < m; row++)
            for (int64_t column = 0; column < n; column++, out++)
                for (int64_t p = 0; p < k; p++)
                    *out += x[row * k + p] * w[p * n + column];
    }
    return y;
}

static Tensor layer(const Case *c)
{
    Tensor y = product(c);
    for (int64_t i = 0; i < y.count && c->in[2].at; i++)
        y.at[i] += c->in[2].at[i % c->in[2].count];
    return y;
}

OP_CASES(product) = {
    {"matmul", "f32[1, 1] f32[1, 1]", "", product},
    {"matmul", "f32[2, 3] f32[3, 4]", "", product},
    {"matmul", "f32[6, 5] f32[5, 16]", "", product},
    {"matmul", "f32[7, 13] f32[13, 17]", "", product},
    {"matmul", "f32[97, 33] f32[33, 65]", "", product},
    {"matmul", "f32[13, 300] f32[300, 19]", "", product},
    {"matmul", "f32[5, 520] f32[520, 7]", "", product},
    {"matmul", "f32[401, 3] f32[3, 270]", "", product},
    {"matmul", "f32[1, 37] f32[37, 300]", "", product},
    {"matmul", "f32[3, 300] f32[300, 41]", "", product},
    {"matmul", "f32[41, 300] f32[300, 2]", "", product},
    {"matmul", "f32[300, 29] f32[29, 1]", "", product},
    {"matmul", "f32[2, 600] f32[600, 2]", "", product},
    {"matmul", "f32[5] f32[5]", "", product},
    {"matmul", "f32[300] f32[300]", "", product},
    {"matmul", "f32[5] f32[5, 3]", "", product},
    {"matmul", "f32[4, 5] f32[5]", "", product},
    {"matmul", "f32[3, 4, 5] f32[5]", "", product},
    {"matmul", "f32[5] f32[3, 5, 4]", "", product},
    {"matmul", "f32[1] f32[1]", "", product},
    {"matmul", "f32[3, 4, 5] f32[3, 5, 2]", "", product},
    {"matmul", "f32[3, 4, 5] f32[5, 6]", "", product},
    {"matmul", "f32[4, 5] f32[3, 5, 6]", "", product},
    {"matmul", "f32[2, 1, 4, 5] f32[3, 5, 6]", "", product},
    {"matmul", "f32[2, 3, 7, 11] f32[2, 1, 11, 13]", "", product},
    {"matmul", "f32[1, 3, 1, 2] f32[4, 1, 2, 5]", "", product},
    {"matmul", "f32[2, 2, 1, 2, 3, 4] f32[3, 1, 4, 5]", "", product},
    {"matmul", "f32[20, 1, 9] f32[9, 8]", "", product},
    {"matmul", "f32[20, 5, 9] f32[20, 9, 8]", "", product},
    {"dense", "f32[4, 5] - -", "units = 7", layer},
    {"dense", "f32[4, 5] - -", "units = 7, bias = false", layer},
    {"dense", "f32[2, 3, 5] - -", "units = 1", layer},
    {"dense", "f32[5] - -", "units = 3", layer},
    {"dense", "f32[4, 5] f32[5, 3] f32[3]", "", layer},
    {"dense", "f32[2, 4, 5] f32[5, 3] -", "", layer},
    {0},
};

OP_ERRORS(product) = {
    {"matmul", "f32[32, 64] f32[63, 10]", "", "matmul: inner sizes differ: [32, 64] @ [63, 10]"},
    {"matmul", "f32[3] f32[4]", "", "matmul: inner sizes differ: [3] @ [4]"},
    {"matmul", "f32[2, 3, 4] f32[5, 4, 3]", "",
     "matmul: batch sizes differ: [2, 3, 4] @ [5, 4, 3]"},
    {"matmul", "f32[] f32[4]", "", "matmul: operands need at least one dimension"},
    {"matmul", "i32[2, 2] i32[2, 2]", "", "matmul: takes f32, not i32[2, 2]"},
    {"dense", "f32[2, 3] - -", "", "dense: needs units"},
    {"dense", "f32[2, 3] - -", "units = 0", "dense: units must be positive"},
    {"dense", "f32[2, 3] f32[4, 5] -", "", "dense: inner sizes differ: x [2, 3], w [4, 5]"},
    {"dense", "f32[2, 3] f32[3, 5] f32[4]", "", "dense: b must be [5]"},
    {0},
};
