/* Matrix products by cuBLAS, or in tiles of our own where cuBLAS has no form for a layout.
 * Row-major is the transpose of column-major: C' = B' A'. */
#ifndef GP_BLAS_CUH
#define GP_BLAS_CUH

#include "tiles.cuh"

/* Element (i, j) of matrix number n is at[n * batch + i * row + j * col]. */
typedef struct {
    gp_reals at;
    int64_t row, col, batch;
} gp_matrix;

typedef struct {
    gp_matrix a, b, to;
    int64_t m, n, k, batches;
    int add; /* accumulate */
} gp_product;

GP_UNUSED static inline gp_matrix gp_matrix_of(gp_reals at, int64_t row, int64_t col, int64_t batch)
{
    const gp_matrix m = {at, row, col, batch};
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

/* What is multiplied, where that has 16 bits; else GP_F32. */
GP_UNUSED static inline int32_t gp_product_half(const gp_product *p)
{
    return p->a.at.dtype != GP_F32 ? p->a.at.dtype : p->b.at.dtype;
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

GP_UNUSED static cublasStatus_t gp_blas_reals(cublasHandle_t blas, const gp_product *p,
                                              gp_blas_side a, gp_blas_side b, int lead)
{
    const gp_real one = 1, before = p->add ? 1 : 0;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, many = (int)p->batches;
#define GP_GEMM(type, name)                                                                     \
    many > 1                                                                                    \
        ? name##StridedBatched(                                                                 \
              blas, a.op, b.op, m, n, k, (const type *)&one, (const type *)p->a.at.at, a.lead,  \
              p->a.batch, (const type *)p->b.at.at, b.lead, p->b.batch, (const type *)&before,  \
              (type *)p->to.at.at, lead, p->to.batch, many)                                     \
        : name(blas, a.op, b.op, m, n, k, (const type *)&one, (const type *)p->a.at.at, a.lead, \
               (const type *)p->b.at.at, b.lead, (const type *)&before, (type *)p->to.at.at, lead)
    if (sizeof(gp_real) == sizeof(float))
        return GP_GEMM(float, cublasSgemm);
    return GP_GEMM(double, cublasDgemm);
#undef GP_GEMM
}

#ifndef GP_NO_HALF
GP_UNUSED static inline cudaDataType_t gp_blas_type(int32_t dtype)
{
    return dtype == GP_BF16 ? CUDA_R_16BF : dtype == GP_F16 ? CUDA_R_16F : CUDA_R_32F;
}

/* Both factors have 16 bits; sums are f32, those of parts of the depth too. */
GP_UNUSED static cublasStatus_t gp_blas_halves(cublasHandle_t blas, const gp_product *p,
                                               gp_blas_side a, gp_blas_side b, int lead)
{
    const float one = 1, before = p->add ? 1 : 0;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const cudaDataType_t of = gp_blas_type(p->a.at.dtype), to = gp_blas_type(p->to.at.dtype);
    const cublasStatus_t status =
        cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (p->batches > 1)
        return cublasGemmStridedBatchedEx(blas, a.op, b.op, m, n, k, &one, p->a.at.at, of, a.lead,
                                          p->a.batch, p->b.at.at, of, b.lead, p->b.batch, &before,
                                          p->to.at.at, to, lead, p->to.batch, (int)p->batches,
                                          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    return cublasGemmEx(blas, a.op, b.op, m, n, k, &one, p->a.at.at, of, a.lead, p->b.at.at, of,
                        b.lead, &before, p->to.at.at, to, lead, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT);
}
#endif

/* In tiles: the high digit counts columns and depth alike. */
GP_UNUSED static int gp_product_tiles(const gp_call *c, const gp_product *p)
{
    gp_tiles t = {};
    t.left = p->a.at;
    t.right = p->b.at;
    t.to = p->to.at;
    t.half = gp_product_half(p);
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

/* Whether cuBLAS has a form for the product, with the sides as it wants them: `p` may be
 * transposed. */
GP_UNUSED static int gp_blas_fits(gp_product *p, gp_blas_side *a, gp_blas_side *b, gp_blas_side *to)
{
    const int64_t most = p->m > p->n ? p->m : p->n;
    if (most > INT32_MAX || p->k > INT32_MAX || p->batches > INT32_MAX)
        return 0;
    if (!gp_blas_sees(p->to, p->m, p->n, to) || to->op != CUBLAS_OP_N) {
        *p = gp_product_transposed(*p);
        if (!gp_blas_sees(p->to, p->m, p->n, to) || to->op != CUBLAS_OP_N)
            return 0;
    }
    return gp_blas_sees(p->a, p->m, p->k, a) && gp_blas_sees(p->b, p->k, p->n, b);
}

/* Both factors have the same dtype. */
GP_UNUSED static int gp_product_of_one(const gp_call *c, gp_product p, void *work, size_t bytes)
{
    gp_blas_side a, b, to;
    const cublasHandle_t blas = gp_device_of(c)->blas;
    if (!gp_blas_fits(&p, &a, &b, &to))
        return gp_product_tiles(c, &p);
    GP_BLAS_CALL(c, cublasSetStream(blas, gp_device_of(c)->stream));
    GP_BLAS_CALL(c, cublasSetWorkspace(blas, work, bytes));
#ifndef GP_NO_HALF
    if (sizeof(gp_half) == 2 && gp_product_half(&p) != GP_F32) {
        const cublasStatus_t status = gp_blas_halves(blas, &p, a, b, to.lead);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH)
            return gp_product_tiles(c, &p); /* bf16 on a GPU that is too old for it */
        GP_BLAS_CALL(c, status);
        return GP_OK;
    }
#endif
    GP_BLAS_CALL(c, gp_blas_reals(blas, &p, a, b, to.lead));
    return GP_OK;
}

#ifndef GP_NO_HALF
/* The matrix in 16 bits, element (i, j) at to[i * k + j]; or, where that is how it lies,
 * transposed: at to[j * m + i]. */
static __global__ void gp_round_matrix(const gp_matrix m, int64_t rows, int64_t cols,
                                       int transposed, gp_reals to)
{
    for (GP_EACH(at, rows * cols)) {
        const int64_t i = transposed ? at % rows : at / cols,
                      j = transposed ? at / rows : at % cols;
        to.put(at, m.at[i * m.row + j * m.col]);
    }
}

/* `rows` x `cols` of a parameter, rounded, as a matrix of the workspace. */
GP_UNUSED static int gp_product_round(const gp_call *c, gp_matrix *m, int64_t rows, int64_t cols,
                                      int32_t half, void *work)
{
    const int transposed = m->row == 1 && m->col != 1;
    const gp_reals to = {work, half};
    GP_LAUNCH(c, gp_round_matrix, gp_blocks(rows * cols, GP_BLOCK), GP_BLOCK, 0, *m, rows, cols,
              transposed, to);
    *m = gp_matrix_of(to, transposed ? 1 : cols, transposed ? rows : 1, 0);
    return GP_OK;
}

/* b is a parameter of f32: some of its columns at a time are rounded and multiplied. */
GP_UNUSED static int gp_product_rounded(const gp_call *c, gp_product p, void *work, size_t bytes)
{
    void *const copy = (char *)work + bytes;
    const int64_t most = gp_rounded_columns(p.n, p.k);
    for (int64_t at = 0; at < p.n; at += most) {
        gp_product part = p;
        part.n = gp_least(most, p.n - at);
        part.b.at = gp_reals_from(p.b.at, at * p.b.col);
        part.to.at = gp_reals_from(p.to.at, at * p.to.col);
        int status = gp_product_round(c, &part.b, p.k, part.n, p.a.at.dtype, copy);
        if (status == GP_OK)
            status = gp_product_of_one(c, part, work, bytes);
        if (status != GP_OK)
            return status;
    }
    return GP_OK;
}

/* The same for each of its matrices, where there are several. */
GP_UNUSED static int gp_product_mixed(const gp_call *c, gp_product p, void *work, size_t bytes)
{
    if (p.a.at.dtype == GP_F32)
        p = gp_product_transposed(p);
    if (p.batches == 1 || p.b.batch == 0)
        return gp_product_rounded(c, p, work, bytes);
    gp_product one = p;
    for (one.batches = 1; p.batches > 0; p.batches--) {
        const int status = gp_product_rounded(c, one, work, bytes);
        if (status != GP_OK)
            return status;
        one.a.at = gp_reals_from(one.a.at, p.a.batch);
        one.b.at = gp_reals_from(one.b.at, p.b.batch);
        one.to.at = gp_reals_from(one.to.at, p.to.batch);
    }
    return GP_OK;
}
#endif

/* Workspace: `bytes` at `work` for cuBLAS, as gp_blas_bytes says: it allocates nothing of its own.
 * After that, gp_rounded_bytes where one factor has 16 bits and the other is f32. */
GP_UNUSED static int gp_product_run(const gp_call *c, gp_product p, void *work, size_t bytes)
{
#ifndef GP_NO_HALF
    if (sizeof(gp_half) == 2 && p.a.at.dtype != p.b.at.dtype)
        return gp_product_mixed(c, p, work, bytes);
#endif
    return gp_product_of_one(c, p, work, bytes);
}

#endif
