/* Batched matrix product: A [..., M, K] @ B [..., K, N]. The batch dims of both operands are the
 * same (a broadcast one has stride 0). The output lacks M or N where the operand was a vector; that
 * dim is 1 then. */
#ifndef GP_MATMUL_H
#define GP_MATMUL_H

#include "gemm_half.h"

enum { GP_THIN = GP_BLOCK(3, 2) }; /* too few rows to pay for packing the other operand */
enum { GP_THIN_COLUMNS = GP_BLOCK(512, 20) };
enum { GP_ASIDE_PANELS = GP_BLOCK(6, 2) }; /* of A, whose product is kept aside at once */

/* The products: one for each batch index, split into tiles. */
typedef struct {
    gp_matrix a, b, c;
    int64_t m, n, k;
    int rank; /* batch dims */
    int64_t dim[GP_MAX_RANK], a_stride[GP_MAX_RANK], b_stride[GP_MAX_RANK], c_stride[GP_MAX_RANK];
    int64_t batches, rows, columns; /* rows, columns: of a tile */
    gp_ending end;                  /* of the first product */
    int thin, swapped;              /* swapped: A and B were exchanged */
#ifndef GP_NO_HALF
    int32_t a_type, b_type, c_type, half; /* half: what is multiplied, where that has 16 bits */
#endif
} gp_product;

/* C' = B' A'. */
GP_FUNCTION void gp_product_transpose(gp_product *p)
{
    const gp_matrix a = p->a;
    const int64_t m = p->m;
#ifndef GP_NO_HALF
    const int32_t type = p->a_type;
    p->a_type = p->b_type;
    p->b_type = type;
#endif
    p->a = gp_transposed(p->b);
    p->b = gp_transposed(a);
    p->c = gp_transposed(p->c);
    p->end = (gp_ending){p->end.call, 0, p->end.col, p->end.row};
    p->m = p->n;
    p->n = m;
    for (int i = 0; i < p->rank; i++) {
        const int64_t stride = p->a_stride[i];
        p->a_stride[i] = p->b_stride[i];
        p->b_stride[i] = stride;
    }
}

/* Batch dims that only continue the rows of A are rows: x [B, T, C] @ w is one product. After a
 * single row, whose own stride is arbitrary, the next may lie anywhere. */
GP_FUNCTION void gp_product_merge(gp_product *p)
{
    for (; p->rank > 0; p->rank--) {
        const int i = p->rank - 1;
        const int rows = p->a_stride[i] == p->m * p->a.row && p->c_stride[i] == p->m * p->c.row;
        if (p->dim[i] == 1)
            continue;
        if (p->b_stride[i] != 0 || (p->m != 1 && !rows))
            return;
        if (GP_WAY(matmul_single, p->m == 1)) {
            p->a.row = p->a_stride[i];
            p->c.row = p->c_stride[i];
        }
        p->m *= p->dim[i];
    }
}

/* A tile for each thread where batches do not divide evenly, split so that the least is packed
 * twice. The split changes no sum. */
GP_FUNCTION void gp_product_tiles(gp_product *p, int64_t threads)
{
    int64_t parts = threads, down = 1;
    p->batches = 1;
    for (int i = 0; i < p->rank; i++)
        p->batches *= p->dim[i];
    if (p->batches >= 8 * threads)
        parts = 1;
    while (parts > 1 && p->batches * (parts - 1) % threads == 0)
        parts--;
    for (int64_t i = 1; i <= parts; i++)
        if (parts % i == 0 && (i - 1) * GP_MR < p->m &&
            p->m / i + p->n * i / parts < p->m / down + p->n * down / parts)
            down = i;
    p->rows = gp_ceil_div(p->m, down);
    p->columns = gp_least(gp_round_up(gp_ceil_div(p->n, parts / down), GP_NR), p->n);
    if (GP_WAY(matmul_thin, p->thin))
        p->columns = gp_least(p->columns, GP_THIN_COLUMNS);
}

GP_FUNCTION gp_product gp_product_plan(const gp_call *call)
{
    const gp_tensor *a = &call->in[0], *b = &call->in[1], *c = &call->out[0];
    const int r = a->rank - 2;
    gp_product p = {.a = {a->data, a->stride[r], a->stride[r + 1]},
                    .b = {b->data, b->stride[r], b->stride[r + 1]},
                    .c = {c->data, 0, 1},
                    .m = a->dim[r],
                    .n = b->dim[r + 1],
                    .k = a->dim[r + 1],
                    .end = {call, 0, b->dim[r + 1], 1},
                    .rank = r};
#ifndef GP_NO_HALF
    p.a_type = a->dtype;
    p.b_type = b->dtype;
    p.c_type = c->dtype;
    p.half = a->dtype != GP_F32 ? a->dtype : b->dtype;
#endif
    if (GP_WAY(matmul_vector, c->rank == r + 1)) { /* m or n is 1 and its stride is arbitrary */
        p.c.row = p.n == 1 ? c->stride[r] : 0;
        p.c.col = p.n == 1 ? 1 : c->stride[r];
    } else if (c->rank == r + 2) {
        p.c.row = c->stride[r];
        p.c.col = c->stride[r + 1];
    }
    for (int i = 0; i < r; i++) {
        p.dim[i] = a->dim[i];
        p.a_stride[i] = a->stride[i];
        p.b_stride[i] = b->stride[i];
        p.c_stride[i] = c->stride[i];
    }
    /* Must not depend on what merges: the layout of a buffer would change the sums. */
    int64_t rows = p.m;
    for (int i = 0; i < r; i++)
        rows *= p.b_stride[i] == 0 ? p.dim[i] : 1;
    p.thin = p.n <= GP_THIN || rows <= GP_THIN;
    gp_product_merge(&p);
    p.swapped = p.thin ? p.n <= GP_THIN && p.n < rows : p.c.row == 1 && p.c.col != 1;
    if (GP_WAY(matmul_swapped, p.swapped))
        gp_product_transpose(&p);
    gp_product_tiles(&p, call->run->threads);
    return p;
}

GP_FUNCTION gp_real gp_dot(const gp_real *restrict a, const gp_real *restrict b, int64_t k)
{
    enum { LANES = 16 };
    gp_real lane[LANES] = {0}, sum = 0;
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES)
        for (int i = 0; i < LANES; i++)
            lane[i] += a[p + i] * b[p + i];
    for (; p < k; p++)
        sum += a[p] * b[p];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return sum + lane[0];
}

/* sum += x[0] * row 0, then x[1] * row 1 and so on, in blocks of constant length that every
 * compiler vectorizes. */
GP_FUNCTION void gp_add_scaled(gp_real *restrict sum, const gp_real *restrict x,
                               const gp_real *restrict rows, int64_t apart, int64_t n)
{
    enum { LANES = 16, AHEAD = 8 };
    const gp_real *restrict second = rows + apart, *restrict third = second + apart;
    const gp_real *restrict fourth = third + apart;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
#if defined(__GNUC__) /* rows are too far apart for the hardware prefetcher */
        for (int i = AHEAD; i < AHEAD + 4; i++)
            __builtin_prefetch(rows + i * apart + j);
#endif
        for (int i = 0; i < LANES; i++) {
            gp_real s = sum[j + i] + x[0] * rows[j + i];
            s += x[1] * second[j + i];
            s += x[2] * third[j + i];
            sum[j + i] = s + x[3] * fourth[j + i];
        }
    }
    for (; j < n; j++)
        for (int i = 0; i < 4; i++)
            sum[j] += x[i] * rows[i * apart + j];
}

/* k elements as a contiguous array: in place, or copied. */
GP_FUNCTION const gp_real *gp_gathered(gp_real *to, const gp_real *from, int64_t step, int64_t k)
{
    if (step == 1)
        return from;
    for (int64_t p = 0; p < k; p++)
        to[p] = from[p * step];
    return to;
}

/* Few rows (at most GP_THIN): B is read once, unpacked. A column is summed in order where the rows
 * of B are contiguous, in lanes where its columns are; n = 1 counts as a column whatever its
 * stride, so that the layout of a buffer never changes the order. */
GP_FUNCTION void gp_thin_tile(gp_matrix c, gp_matrix a, gp_matrix b, int64_t m, int64_t n,
                              int64_t k)
{
    gp_real sum[GP_THIN][GP_THIN_COLUMNS] = {{0}}, copy[GP_KC], rows[GP_THIN][GP_KC];
    for (int64_t p0 = 0; p0 < k; p0 += GP_KC) {
        const int64_t depth = gp_least(GP_KC, k - p0);
        for (int64_t i = 0; i < m; i++)
            for (int64_t p = 0; p < depth; p++)
                rows[i][p] = a.at[i * a.row + (p0 + p) * a.col];
        if (n > 1 && b.col == 1) {
            int64_t p = 0;
            for (; p + 4 <= depth; p += 4)
                for (int64_t i = 0; i < m; i++)
                    gp_add_scaled(sum[i], rows[i] + p, b.at + (p0 + p) * b.row, b.row, n);
            for (; p < depth; p++)
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < n; j++)
                        sum[i][j] += rows[i][p] * b.at[(p0 + p) * b.row + j];
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            const gp_real *column = gp_gathered(copy, b.at + j * b.col + p0 * b.row, b.row, depth);
            for (int64_t i = 0; i < m; i++)
                sum[i][j] += gp_dot(rows[i], column, depth);
        }
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c.at[i * c.row + j * c.col] = sum[i][j];
}

/* A tile whose sums may not lie in C while they are made: in parts, each to its full depth aside,
 * then with its epilogue to C. */
static GP_NOINLINE void gp_product_aside(const gp_product *p, gp_matrix c, gp_matrix a, gp_matrix b,
                                         int64_t m, int64_t n, gp_real *work, gp_ending end)
{
    const int64_t rows = p->thin ? m : GP_ASIDE_PANELS * GP_MR, columns = p->thin ? n : GP_NC;
    gp_real *aside = p->thin ? work : work + gp_round_up(gp_gemm_work(p->columns, p->k), 16);
    for (int64_t j = 0; j < n; j += columns)
        for (int64_t i = 0; i < m; i += rows) {
            const int64_t some = gp_least(rows, m - i), width = gp_least(columns, n - j);
            const gp_matrix to = {aside, width, 1};
            const gp_matrix left = gp_matrix_at(a, i, 0), right = gp_matrix_at(b, 0, j);
            if (p->thin)
                gp_thin_tile(to, left, right, some, width, p->k);
            else
                gp_gemm(to, left, right, some, width, p->k, 0, work, (gp_ending){0});
            gp_finish_aside(gp_ending_at(end, i, j), gp_matrix_at(c, i, j), to, some, width);
        }
}

/* The same of 16-bit numbers, thin or not. Each operand lies `from` elements on in its tensor. */
GP_FUNCTION void gp_product_half(const gp_product *p, int64_t i, int64_t j, const int64_t *from,
                                 int64_t m, int64_t n, gp_real *work, gp_ending end)
{
    const gp_reals a = {p->a.at, p->a.row, p->a.col, p->a_type};
    const gp_reals b = {p->b.at, p->b.row, p->b.col, p->b_type};
    const gp_reals c = {p->c.at, p->c.row, p->c.col, p->c_type};
    gp_half_product(gp_reals_from(c, i, j, from[2]), gp_reals_from(a, i, 0, from[0]),
                    gp_reals_from(b, 0, j, from[1]), m, n, p->k, p->half, work, end);
}

/* Elements to this product in A, B and C. */
GP_FUNCTION void gp_product_find(const gp_product *p, int64_t batch, int64_t *from)
{
    for (int d = p->rank; d-- > 0; batch /= p->dim[d]) {
        const int64_t at = batch % p->dim[d];
        from[0] += at * p->a_stride[d];
        from[1] += at * p->b_stride[d];
        from[2] += at * p->c_stride[d];
    }
}

static GP_NOINLINE void gp_product_tile(const gp_product *p, int64_t unit, gp_real *work)
{
    const int64_t across = gp_ceil_div(p->n, p->columns), down = gp_ceil_div(p->m, p->rows);
    const int64_t j = unit % across * p->columns, i = unit / across % down * p->rows;
    const int64_t batch = unit / across / down;
    int64_t from[3] = {0};
    gp_ending end = gp_ending_at(p->end, i, j);
    end.first += batch * p->m * p->n;
    if (GP_WAY(matmul_batches, p->rank > 0))
        gp_product_find(p, batch, from);
    const int64_t m = gp_least(p->rows, p->m - i), n = gp_least(p->columns, p->n - j);
    if (GP_WAY(matmul_half, p->half != GP_F32)) {
        gp_product_half(p, i, j, from, m, n, work, end);
        return;
    }
    gp_matrix a = gp_matrix_at(p->a, i, 0), b = gp_matrix_at(p->b, 0, j);
    gp_matrix c = gp_matrix_at(p->c, i, j);
    a.at += from[0];
    b.at += from[1];
    c.at += from[2];
    (void)work; /* thin products need none */
    if (GP_WAY(matmul_aside, end.call->aside)) {
        gp_product_aside(p, c, a, b, m, n, work, end);
        return;
    }
    if (GP_WAY(matmul_thin, p->thin)) {
        gp_thin_tile(c, a, b, m, n, p->k);
        gp_finish(end, c, m, n);
    } else {
        gp_gemm(c, a, b, m, n, p->k, 0, work, end);
    }
}

/* Of what a thread keeps aside, for a product of m x n elements in all. */
GP_FUNCTION int64_t gp_product_aside_work(const gp_call *c, int64_t m, int64_t n)
{
    const int64_t most = GP_ASIDE_PANELS * GP_MR_LARGEST * GP_NC_LARGEST;
    return c->aside ? gp_round_up(gp_least(m * n, most), 16) + 16 : 0;
}

/* An upper bound for any strides, though they decide which batches merge and what is transposed. */
GP_WORKSPACE(matmul)
{
    const gp_tensor *a = &c->in[0], *b = &c->in[1];
    const int64_t m = gp_span(a, 0, a->rank - 1), n = b->dim[b->rank - 1], k = a->dim[a->rank - 1];
    if (a->dtype != GP_F32 || b->dtype != GP_F32)
        return (size_t)(gp_half_work(m > n ? m : n, k) * c->run->threads) * sizeof(gp_real);
    const int64_t aside = gp_product_aside_work(c, m, n), thin = n <= GP_THIN || m <= GP_THIN;
    return (size_t)((thin ? aside : gp_gemm_work(m > n ? m : n, k) + aside) * c->run->threads) *
           sizeof(gp_real);
}

GP_WAYS(matmul)
{
    const gp_product p = gp_product_plan(c);
    gp_way(ways, "matmul_half", p.half != GP_F32);
    gp_way(ways, "matmul_batches", p.rank > 0);
    gp_way(ways, "matmul_swapped", p.swapped);
    gp_way(ways, "matmul_vector", c->out[0].rank == c->in[0].rank - 1);
    gp_way(ways, "matmul_single", 0);
    if (c->in[0].dim[c->in[0].rank - 2] == 1 || p.m == 1) /* until rows of batches are merged */
        gp_way(ways, "matmul_single", 1);
    gp_way(ways, "matmul_thin", p.thin);
    if (p.half == GP_F32)
        gp_way(ways, "matmul_aside", c->aside);
    const int known = p.half == GP_F32 && !c->aside && !p.thin;
    gp_gemm_ways(ways, known ? &p.a : NULL, &p.b, &p.c, p.end.col);
}

GP_KERNEL(matmul)
{
    const gp_product p = gp_product_plan(c);
    const int64_t units = p.batches * gp_ceil_div(p.m, p.rows) * gp_ceil_div(p.n, p.columns);
    int64_t own = p.thin ? 0 : gp_gemm_work(p.columns, p.k);
    if (GP_WAY(matmul_aside, c->aside))
        own += gp_product_aside_work(c, p.batches * p.m, p.n);
    if (GP_WAY(matmul_half, p.half != GP_F32))
        own = gp_half_work(p.rows > p.columns ? p.rows : p.columns, p.k);
    if (units == 1 ||
        p.batches * p.m * p.n * p.k <= 32768) { /* starting threads would take longer */
        for (int64_t unit = 0; unit < units; unit++)
            gp_product_tile(&p, unit, c->work);
        return GP_OK;
    }
    GP_PARALLEL(c->run, 1)
    for (int64_t unit = 0; unit < units; unit++)
        gp_product_tile(&p, unit, own ? (gp_real *)c->work + gp_thread() * own : NULL);
    return GP_OK;
}

#endif
