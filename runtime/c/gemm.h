/* The matrix product: C = A B or C += A B, any strides, blocked for the caches.
 *
 * For each block of the inner dimension (GP_KC), columns of B and rows of A are packed into panels:
 * up to GP_MR rows, and GP_NR columns, the last panel padded with zeros. Goto and van de Geijn,
 * Anatomy of High-Performance Matrix Multiplication (2008).
 *
 * Each element is summed in the order of the inner dimension, block after block. How rows and
 * columns are blocked, and which operand is transposed, changes no bit. */
#ifndef GP_GEMM_H
#define GP_GEMM_H

#include "epilogue.h"
#include "panel.h"

/* Panels of A for which columns of B are read in place. */
enum { GP_GEMM_IN_PLACE = GP_BLOCK(20, 2) };

/* Stores or adds the part of a tile within C: m x n of it. */
static GP_NOINLINE void gp_tile_store(gp_matrix c, const gp_real *restrict tile, int64_t m,
                                      int64_t n, int add)
{
    for (int64_t i = 0; i < m; i++) {
        gp_real *restrict at = c.at + i * c.row;
        const gp_real *restrict sum = tile + i * GP_NR;
        if (GP_WAY(store_apart, c.col != 1))
            for (int64_t j = 0; j < n; j++)
                at[j * c.col] = add ? at[j * c.col] + sum[j] : sum[j];
        else if (add)
            for (int64_t j = 0; j < n; j++)
                at[j] += sum[j];
        else
            for (int64_t j = 0; j < n; j++)
                at[j] = sum[j];
    }
}

/* Panels of A have nearly equal heights: the first row of panel i of a matrix with m rows. */
GP_FUNCTION int64_t gp_panel_begin(int64_t i, int64_t m)
{
    return i * m / gp_ceil_div(m, GP_MR);
}

/* Columns j .. of C = or += a packed panel of A times a panel of B, m x n of it. */
static GP_NOINLINE void gp_panel_into(gp_matrix c, const gp_real *rows, int64_t m, const gp_real *b,
                                      int64_t b_step, int64_t n, int64_t k, int add,
                                      const gp_ahead *ahead)
{
    gp_real tile[GP_MR * GP_NR];
    if (c.col == 1 && (n == GP_NR || n == GP_LANES)) {
        gp_panel_product(c.at, c.row, rows, m, b, b_step, n, k, add, ahead);
        return;
    }
    gp_panel_product(tile, GP_NR, rows, m, b, b_step, n, k, 0, ahead);
    gp_tile_store(c, tile, m, n, add);
}

/* The epilogue for final elements of C: (i, j) has index first + i * row + j * col in the
 * output. */
typedef struct {
    const gp_call *call; /* NULL: none */
    int64_t first, row, col;
} gp_ending;

GP_FUNCTION gp_ending gp_ending_at(gp_ending e, int64_t i, int64_t j)
{
    e.first += i * e.row + j * e.col;
    return e;
}

/* Runs the epilogue on m x n final elements of C. */
GP_FUNCTION void gp_finish(gp_ending e, gp_matrix c, int64_t m, int64_t n)
{
    if (!e.call || !e.call->epilogue)
        return;
    /* iterate along the rows of the output, even if C is transposed */
    if (GP_WAY(finish_across, e.col != 1)) {
        const int64_t rows = m;
        e = (gp_ending){e.call, e.first, e.col, e.row};
        c = gp_transposed(c);
        m = n;
        n = rows;
    }
    if (c.col == 1 && e.row == n && c.row == n) {
        n *= m;
        m = 1;
    }
    for (int64_t i = 0; i < m; i++)
        gp_epilogue_run(e.call, c.at + i * c.row, c.col, e.first + i * e.row, n);
}

/* The same for elements that were made aside, which are then written to C. */
GP_FUNCTION void gp_finish_aside(gp_ending e, gp_matrix c, gp_matrix aside, int64_t m, int64_t n)
{
    gp_finish(e, aside, m, n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c.at[i * c.row + j * c.col] = aside.at[i * aside.row + j];
}

/* Which strides a product has: of A, B, C, and of what the epilogue runs over. NULL: any. */
GP_FUNCTION void gp_gemm_ways(gp_ways *ways, const gp_matrix *a, const gp_matrix *b,
                              const gp_matrix *c, int64_t end)
{
    const int last = a ? 0 : 1;
    for (int any = 0; any <= last; any++) {
        gp_way(ways, "copy_apart", a ? a->col != 1 && a->row != 1 : any);
        gp_way(ways, "pack_apart", a ? b->col != 1 && b->row != 1 : any);
        gp_way(ways, "store_apart", a ? c->col != 1 : any);
        gp_way(ways, "finish_across", a ? end != 1 : any);
        gp_way(ways, "epilogue_apart", a ? c->col != 1 || end != 1 : any);
    }
}

/* Columns of B, k deep: the first ones in place, `step` from row to row, the others in panels. */
typedef struct {
    const gp_real *at;
    int64_t step, as_is; /* as_is: a multiple of the vector width */
    const gp_real *packed;
} gp_columns;

/* C (m x n) = or += A (m x k) times columns. Panels of A are packed one at a time. */
GP_FUNCTION void gp_block_product(gp_matrix c, gp_matrix a, int64_t m, int64_t n, int64_t k,
                                  gp_real *rows, gp_columns b, int add, gp_ending end)
{
    const int64_t depth = gp_even(k, GP_KC);
    for (int64_t i = 0, from = 0, to; from < m; from = to) {
        to = gp_panel_begin(++i, m);
        for (int64_t p = 0, some; p < k; p += some) {
            some = gp_least(depth, k - p);
            gp_pack_a(rows, gp_matrix_at(a, from, p), to - from, some);
            const gp_coming next = gp_coming_of(gp_matrix_at(a, to < m ? to : from, p), some);
            for (int64_t j = 0; j < n; j += GP_NR) {
                const int as_is = j < b.as_is;
                const int64_t width = gp_least(GP_NR, n - j), step = as_is ? b.step : GP_NR;
                const gp_real *panel = as_is ? b.at + j : b.packed + (j - b.as_is) * k;
                const gp_ahead ahead = gp_ahead_of(next, some, j, width, n);
                gp_panel_into(gp_matrix_at(c, from, j), rows, to - from, panel + p * step, step,
                              width, some, add || p > 0, &ahead);
            }
        }
        gp_finish(gp_ending_at(end, from, 0), gp_matrix_at(c, from, 0), to - from, n);
    }
}

/* C (m x n) = or += A B: the task of a thread, with gp_gemm_work elements of workspace. */
static GP_NOINLINE void gp_gemm(gp_matrix c, gp_matrix a, gp_matrix b, int64_t m, int64_t n,
                                int64_t k, int add, gp_real *work, gp_ending end)
{
    gp_real *rows = work, *packed = work + GP_GEMM_ROWS;
    const int64_t across = gp_round_up(gp_even(n, GP_NC), GP_NR), depth = gp_even(k, GP_KC);
    /* columns that are used only a few times are not packed */
    const int direct = b.col == 1 && m <= GP_GEMM_IN_PLACE * GP_MR;
    for (int64_t j = 0; j < n; j += across)
        for (int64_t p = 0; p < k; p += depth) {
            const int64_t width = gp_least(across, n - j), some = gp_least(depth, k - p);
            const gp_matrix from = gp_matrix_at(b, p, j);
            gp_columns columns = {from.at, from.row, 0, packed};
            gp_ending here = {0}; /* nothing is final before the last block of k */
            if (p + some == k)
                here = gp_ending_at(end, 0, j);
            if (direct)
                columns.as_is = width % GP_NR == GP_LANES ? width : width / GP_NR * GP_NR;
            if (columns.as_is < width)
                gp_pack_b(packed, gp_matrix_at(from, 0, columns.as_is), some,
                          width - columns.as_is);
            gp_block_product(gp_matrix_at(c, 0, j), gp_matrix_at(a, 0, p), m, width, some, rows,
                             columns, add || p > 0, here);
        }
}

#endif
