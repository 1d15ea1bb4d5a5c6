/* Batched matrix product: A [..., M, K] @ B [..., K, N]. The batch dims of both operands are the
 * same (a broadcast one has stride 0). The output lacks M or N where the operand was a vector; that
 * dim is 1 then. */
#ifndef GP_MATMUL_CUH
#define GP_MATMUL_CUH

#include "blas.cuh"

/* One product for each batch index. */
typedef struct {
    gp_product p;
    int rank;                                                                  /* batch dims */
    int64_t dim[GP_MAX_RANK], a[GP_MAX_RANK], b[GP_MAX_RANK], to[GP_MAX_RANK]; /* strides */
} gp_batch;

GP_UNUSED static gp_batch gp_matmul_batch(const gp_call *c)
{
    const gp_tensor *a = &c->in[0], *b = &c->in[1], *to = &c->out[0];
    const int r = a->rank - 2;
    gp_batch s = {};
    gp_product *p = &s.p;
    p->m = a->dim[r];
    p->n = b->dim[r + 1];
    p->k = a->dim[r + 1];
    p->batches = 1;
    p->a = gp_matrix_of(gp_reals_of(a), a->stride[r], a->stride[r + 1], 0);
    p->b = gp_matrix_of(gp_reals_of(b), b->stride[r], b->stride[r + 1], 0);
    p->to = gp_matrix_of(gp_reals_of(to), 0, 1, 0);
    if (to->rank == r + 2) {
        p->to.row = to->stride[r];
        p->to.col = to->stride[r + 1];
    } else if (to->rank == r + 1) { /* m or n is 1 and its stride is arbitrary */
        p->to.row = p->n == 1 ? to->stride[r] : 0;
        p->to.col = p->n == 1 ? 1 : to->stride[r];
    }
    for (int i = 0; i < r; i++) {
        if (a->dim[i] == 1)
            continue;
        s.dim[s.rank] = a->dim[i];
        s.a[s.rank] = a->stride[i];
        s.b[s.rank] = b->stride[i];
        s.to[s.rank++] = to->stride[i];
    }
    return s;
}

/* Batch dims that only continue the rows of A are rows: x [B, T, C] @ w is one product. The last of
 * the others is cuBLAS's batch, merged with those before it that continue it. */
GP_UNUSED static void gp_batch_merge(gp_batch *s)
{
    gp_product *p = &s->p;
    for (int i; (i = s->rank - 1) >= 0; s->rank--) {
        const int rows = p->m == 1 || (s->a[i] == p->m * p->a.row && s->to[i] == p->m * p->to.row);
        if (s->b[i] != 0 || !rows)
            break;
        p->a.row = p->m == 1 ? s->a[i] : p->a.row;
        p->to.row = p->m == 1 ? s->to[i] : p->to.row;
        p->m *= s->dim[i];
    }
    for (int i; (i = s->rank - 1) >= 0; s->rank--) {
        const int64_t n = p->batches;
        if (n > 1 &&
            (s->a[i] != n * p->a.batch || s->b[i] != n * p->b.batch || s->to[i] != n * p->to.batch))
            break;
        if (n == 1) {
            p->a.batch = s->a[i];
            p->b.batch = s->b[i];
            p->to.batch = s->to[i];
        }
        p->batches *= s->dim[i];
    }
}

GP_KERNEL(matmul)
{
    gp_batch s = gp_matmul_batch(c);
    int64_t loops = 1;
    gp_batch_merge(&s);
    for (int i = 0; i < s.rank; i++)
        loops *= s.dim[i];
    for (int64_t loop = 0; loop < loops; loop++) {
        gp_product p = s.p;
        int64_t left = loop;
        for (int i = s.rank; i-- > 0; left /= s.dim[i]) {
            p.a.at = gp_reals_from(p.a.at, left % s.dim[i] * s.a[i]);
            p.b.at = gp_reals_from(p.b.at, left % s.dim[i] * s.b[i]);
            p.to.at = gp_reals_from(p.to.at, left % s.dim[i] * s.to[i]);
        }
        const int status = gp_product_run(c, p, c->work, gp_blas_bytes(gp_count(&c->out[0])));
        if (status != GP_OK)
            return status;
    }
    return GP_OK;
}

GP_TAKES_HALF(matmul)

#endif
