/* The matrix product: C = A B or C += A B, any strides, in tiles that fit the caches.
 *
 * A tile of C is the unit of parallel work. For each stretch of GP_KC along the inner dimension,
 * the rows of A and the columns of B that it needs are packed into panels (GP_MR rows or GP_NR
 * columns wide, filled up with zeros), and a small kernel keeps GP_MR rows of sums in registers.
 * Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
 *
 * The order of each sum follows from the sizes alone.
 */
#ifndef GP_GEMM_H
#define GP_GEMM_H

#include "base.h"

enum {
    GP_MR = 6,   /* GP_EACH_ROW below has as many */
    GP_NR = 16,  /* a multiple of the columns of gp_strip_product */
    GP_MC = 96,  /* rows of a packed block of A: a multiple of GP_MR */
    GP_NC = 256, /* columns of a packed block of B: a multiple of GP_NR */
    GP_KC = 256,
};

/* Element (i, j) is at[i * row + j * col]. */
typedef struct {
    gp_real *at;
    int64_t row, col;
} gp_matrix;

GP_FUNCTION int64_t gp_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

GP_FUNCTION int64_t gp_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

GP_FUNCTION int64_t gp_round_up(int64_t a, int64_t b)
{
    return gp_ceil_div(a, b) * b;
}

/* Elements of the packed blocks for a tile of m x n, each begun at a multiple of 64 bytes. */
GP_FUNCTION int64_t gp_gemm_rows(int64_t m, int64_t k)
{
    return gp_round_up(gp_least(gp_round_up(m, GP_MR), GP_MC) * gp_least(k, GP_KC), 16);
}

GP_FUNCTION int64_t gp_gemm_columns(int64_t n, int64_t k)
{
    return gp_round_up(n, GP_NR) * gp_least(k, GP_KC);
}

/* What one thread needs for tiles of at most m x n: elements. */
GP_FUNCTION int64_t gp_gemm_work(int64_t m, int64_t n, int64_t k)
{
    return gp_gemm_rows(m, k) + gp_gemm_columns(n, k);
}

GP_FUNCTION gp_matrix gp_matrix_at(gp_matrix a, int64_t i, int64_t j)
{
    a.at += i * a.row + j * a.col;
    return a;
}

/* `lines` lines of k elements, side by side in panels of `width` lines; the last panel is filled
 * up with zeros. Rows of A: line = row, step = col. Columns of B: the other way round. */
GP_FUNCTION void gp_pack(gp_real *panel, const gp_real *from, int64_t lines, int64_t line,
                         int64_t k, int64_t step, int64_t width)
{
    for (int64_t i0 = 0; i0 < lines; i0 += width, panel += width * k)
        for (int64_t i = 0; i < width; i++) {
            const gp_real *at = from + (i0 + i) * line;
            if (i0 + i >= lines)
                for (int64_t p = 0; p < k; p++)
                    panel[p * width + i] = 0;
            else
                for (int64_t p = 0; p < k; p++)
                    panel[p * width + i] = at[p * step];
        }
}

/* Row p (of k) of a block of B, its n columns side by side in memory, into the panels. */
GP_FUNCTION void gp_pack_row(gp_real *panel, const gp_real *row, int64_t n, int64_t p, int64_t k)
{
    panel += p * GP_NR;
    for (; n >= GP_NR; n -= GP_NR, row += GP_NR, panel += GP_NR * k)
        memcpy(panel, row, GP_NR * sizeof *panel);
    if (n > 0)
        for (int64_t j = 0; j < GP_NR; j++)
            panel[j] = j < n ? row[j] : 0;
}

GP_FUNCTION void gp_pack_a(gp_real *panel, gp_matrix a, int64_t m, int64_t k)
{
    gp_pack(panel, a.at, m, a.row, k, a.col, GP_MR);
}

GP_FUNCTION void gp_pack_b(gp_real *panel, gp_matrix b, int64_t k, int64_t n)
{
    if (b.col == 1)
        for (int64_t p = 0; p < k; p++)
            gp_pack_row(panel, b.at + p * b.row, n, p, k);
    else
        gp_pack(panel, b.at, n, b.col, k, b.row, GP_NR);
}

/* tile = a panel of A times some columns of a panel of B. Sums stay in registers: vectors where
 * the compiler has them, since it does not make them out of loops over an array by itself. */
#if defined(__GNUC__)
#if defined(__AVX__)
#define GP_VECTOR_BYTES 32
#else
#define GP_VECTOR_BYTES 16
#endif
#define GP_LANES (GP_VECTOR_BYTES / (int)sizeof(gp_real))
#define GP_STRIP (2 * GP_LANES)
typedef gp_real gp_lanes
    __attribute__((vector_size(GP_VECTOR_BYTES), aligned(sizeof(gp_real)), may_alias));

GP_FUNCTION void gp_strip_product(gp_real *restrict tile, const gp_real *restrict a,
                                  const gp_real *restrict b, int64_t k)
{
#define GP_EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define GP_ZERO(i) gp_lanes left##i = {0}, right##i = {0};
#define GP_ADD(i) left##i += a[i] * left, right##i += a[i] * right;
#define GP_KEEP(i)                             \
    *(gp_lanes *)(tile + i * GP_NR) = left##i; \
    *(gp_lanes *)(tile + i * GP_NR + GP_LANES) = right##i;
    GP_EACH_ROW(GP_ZERO)
    for (int64_t p = 0; p < k; p++, a += GP_MR, b += GP_NR) {
        const gp_lanes left = *(const gp_lanes *)b, right = *(const gp_lanes *)(b + GP_LANES);
        GP_EACH_ROW(GP_ADD)
    }
    GP_EACH_ROW(GP_KEEP)
#undef GP_EACH_ROW
#undef GP_ZERO
#undef GP_ADD
#undef GP_KEEP
}
#else
#define GP_STRIP 4
GP_FUNCTION void gp_strip_product(gp_real *restrict tile, const gp_real *restrict a,
                                  const gp_real *restrict b, int64_t k)
{
    for (int i = 0; i < GP_MR; i++)
        for (int j = 0; j < GP_STRIP; j++)
            tile[i * GP_NR + j] = 0;
    for (int64_t p = 0; p < k; p++, a += GP_MR, b += GP_NR)
        for (int i = 0; i < GP_MR; i++)
            for (int j = 0; j < GP_STRIP; j++)
                tile[i * GP_NR + j] += a[i] * b[j];
}
#endif

/* Writes or adds the part of a tile that lies within C: m x n of it. */
GP_FUNCTION void gp_tile_store(gp_matrix c, const gp_real *restrict tile, int64_t m, int64_t n,
                               int add)
{
    for (int64_t i = 0; i < m; i++) {
        gp_real *restrict at = c.at + i * c.row;
        const gp_real *restrict sum = tile + i * GP_NR;
        if (c.col == 1 && add)
            for (int64_t j = 0; j < n; j++)
                at[j] += sum[j];
        else if (c.col == 1)
            for (int64_t j = 0; j < n; j++)
                at[j] = sum[j];
        else
            for (int64_t j = 0; j < n; j++)
                at[j * c.col] = add ? at[j * c.col] + sum[j] : sum[j];
    }
}

/* C (m x n) = or += packed rows times packed columns. */
static GP_NOINLINE void gp_block_product(gp_matrix c, int64_t m, int64_t n, int64_t k,
                                         const gp_real *rows, const gp_real *columns, int add)
{
    gp_real tile[GP_MR * GP_NR];
    for (int64_t j = 0; j < n; j += GP_NR)
        for (int64_t i = 0; i < m; i += GP_MR) {
            for (int s = 0; s < GP_NR; s += GP_STRIP)
                gp_strip_product(tile + s, rows + i * k, columns + j * k + s, k);
            gp_tile_store(gp_matrix_at(c, i, j), tile, gp_least(GP_MR, m - i),
                          gp_least(GP_NR, n - j), add);
        }
}

/* One tile of C, at most GP_NC columns: what a thread does, with its gp_gemm_work elements. */
GP_FUNCTION void gp_gemm_tile(gp_matrix c, gp_matrix a, gp_matrix b, int64_t m, int64_t n,
                              int64_t k, int add, gp_real *work)
{
    gp_real *rows = work, *columns = work + gp_gemm_rows(m, k);
    for (int64_t p = 0; p < k; p += GP_KC) {
        const int64_t depth = gp_least(GP_KC, k - p);
        gp_pack_b(columns, gp_matrix_at(b, p, 0), depth, n);
        for (int64_t i = 0; i < m; i += GP_MC) {
            const int64_t height = gp_least(GP_MC, m - i);
            gp_pack_a(rows, gp_matrix_at(a, i, p), height, depth);
            gp_block_product(gp_matrix_at(c, i, 0), height, n, depth, rows, columns, add || p > 0);
        }
    }
}

#endif
