/* Matrix products by cuBLAS, or in tiles of our own where cuBLAS has no form for a layout.
 * Row-major is the transpose of column-major: C' = B' A'. */
#ifndef GP_BLAS_CUH
#define GP_BLAS_CUH

#include "tiles.cuh"

/* Element (i, j) of matrix number n is at[n * batch + i * row + j * col]. */
typedef struct {
    gp_real *at;
    int64_t row, col, batch;
} gp_matrix;

typedef struct {
    gp_matrix a, b, to;
    int64_t m, n, k, batches;
    int add; /* accumulate */
} gp_product;

GP_UNUSED static inline gp_matrix gp_matrix_of(const void *at, int64_t row, int64_t col,
                                               int64_t batch)
{
    const gp_matrix m = {(gp_real *)at, row, col, batch};
    return m;
}

GP_UNUSED static inline gp_matrix gp_transposed(gp_matrix m)
{
    return gp_matrix_of(m.at, m.col, m.row, m.batch);
}

GP_UNUSED static inline gp_product gp_product_transposed(gp_product p)
{
    const gp_product transposed = {gp_transposed(p.b),
                                   gp_transposed(p.a),
                                   gp_transposed(p.to),
                                   p.n,
                                   p.m,
                                   p.k,
                                   p.batches,
                                   p.add};
    return transposed;
}

/* How cuBLAS, which is column-major, sees a matrix; false where it cannot. The stride of a dim of 1
 * is arbitrary. */
typedef struct {
    cublasOperation_t op;
    int lead;
} gp_blas_side;

GP_UNUSED static int gp_blas_sees(gp_matrix m, int64_t rows, int64_t cols, gp_blas_side *side)
{
    for (int transpose = 0; transpose < 2; transpose++) {
        const int64_t lead = cols == 1 ? rows : m.col;
        side->op = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
        side->lead = (int)(lead < INT32_MAX ? lead : 0);
        if ((rows == 1 || m.row == 1) && lead >= rows && lead < INT32_MAX)
            return m.batch >= 0;
        const int64_t count = rows;
        m = gp_transposed(m);
        rows = cols;
        cols = count;
    }
    return 0;
}

GP_UNUSED static cublasStatus_t gp_blas_multiply(cublasHandle_t blas, const gp_product *p,
                                                 gp_blas_side a, gp_blas_side b, int lead)
{
    const gp_real one = 1, before = p->add ? 1 : 0;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, many = (int)p->batches;
#define GP_GEMM(type, name)                                                                       \
    many > 1                                                                                      \
        ? name##StridedBatched(blas, a.op, b.op, m, n, k, (const type *)&one,                     \
                               (const type *)p->a.at, a.lead, p->a.batch, (const type *)p->b.at,  \
                               b.lead, p->b.batch, (const type *)&before, (type *)p->to.at, lead, \
                               p->to.batch, many)                                                 \
        : name(blas, a.op, b.op, m, n, k, (const type *)&one, (const type *)p->a.at, a.lead,      \
               (const type *)p->b.at, b.lead, (const type *)&before, (type *)p->to.at, lead)
    if (sizeof(gp_real) == sizeof(float))
        return GP_GEMM(float, cublasSgemm);
    return GP_GEMM(double, cublasDgemm);
#undef GP_GEMM
}

/* In tiles: the high digit counts columns and depth alike. */
GP_UNUSED static int gp_product_tiles(const gp_call *c, const gp_product *p)
{
    gp_tiles t = {};
    t.left = p->a.at;
    t.right = p->b.at;
    t.to = p->to.at;
    t.rows = p->m;
    t.columns = p->n;
    t.depth = p->k;
    t.batches = p->batches;
    t.depth_radix[0] = t.depth_radix[1] = t.column_radix[0] = t.column_radix[1] = 1;
    t.left_row = p->a.row;
    t.left_batch = p->a.batch;
    t.left_depth.stride[0] = p->a.col;
    t.right_depth.stride[0] = p->b.row;
    t.right_column[0] = p->b.col;
    t.right_batch = p->b.batch;
    t.to_row = p->to.row;
    t.to_column[0] = p->to.col;
    t.to_batch = p->to.batch;
    t.size[0] = t.size[1] = 1; /* no window */
    t.parts = 1;
    t.add = p->add;
    return gp_tiles_run(c, t);
}

/* Workspace: `bytes` at `work`, as gp_blas_bytes says. cuBLAS allocates nothing of its own. */
GP_UNUSED static int gp_product_run(const gp_call *c, gp_product p, void *work, size_t bytes)
{
    gp_blas_side a, b, to;
    const cublasHandle_t blas = gp_device_of(c)->blas;
    const int64_t most = p.m > p.n ? p.m : p.n;
    if (most > INT32_MAX || p.k > INT32_MAX || p.batches > INT32_MAX)
        return gp_product_tiles(c, &p);
    if (!gp_blas_sees(p.to, p.m, p.n, &to) || to.op != CUBLAS_OP_N) {
        p = gp_product_transposed(p);
        if (!gp_blas_sees(p.to, p.m, p.n, &to) || to.op != CUBLAS_OP_N)
            return gp_product_tiles(c, &p);
    }
    if (!gp_blas_sees(p.a, p.m, p.k, &a) || !gp_blas_sees(p.b, p.k, p.n, &b))
        return gp_product_tiles(c, &p);
    GP_BLAS_CALL(c, cublasSetStream(blas, gp_device_of(c)->stream));
    GP_BLAS_CALL(c, cublasSetWorkspace(blas, work, bytes));
    GP_BLAS_CALL(c, gp_blas_multiply(blas, &p, a, b, to.lead));
    return GP_OK;
}

#endif
