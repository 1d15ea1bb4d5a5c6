/* Panels of a matrix product: how operands are packed, and the microkernels that multiply two
 * panels with all sums in registers. There is one for each height, so no row is padded. */
#ifndef GP_PANEL_H
#define GP_PANEL_H

#include "vector.h"

/* A panel: as many rows as leave registers for a row of B, and two vectors of columns. */
#if GP_VECTOR_BYTES == 64
#define GP_MR 14
#elif defined(__aarch64__)
#define GP_MR 12
#elif defined(__GNUC__)
#define GP_MR 6
#else
#define GP_MR 4
#endif
#define GP_NR (2 * GP_LANES)

/* Block sizes. A panel of A stays in L1, a block of B in L2. Workspace is planned for the largest,
 * whatever the instruction set. */
enum {
    GP_KC = GP_BLOCK(256, 12),         /* of the inner dimension */
    GP_NC_LARGEST = GP_BLOCK(768, 64), /* columns of a packed block of B */
    GP_NR_LARGEST = 32,                /* columns of a panel */
    GP_MR_LARGEST = 14,                /* rows of a panel */
    GP_LINE = GP_KC + 16, /* row stride of a packed panel: avoids cache set conflicts */
    GP_NC = GP_BLOCK(GP_VECTOR_BYTES == 64 ? GP_NC_LARGEST : 256, 2 * GP_NR)
};
_Static_assert(GP_NR <= GP_NR_LARGEST && GP_MR <= GP_MR_LARGEST && GP_NC <= GP_NC_LARGEST,
               "packed panels fit the planned workspace");

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

/* n in the fewest equal parts of at most `most`: the size of a part. */
GP_FUNCTION int64_t gp_even(int64_t n, int64_t most)
{
    return n <= most ? n : gp_ceil_div(n, gp_ceil_div(n, most));
}

/* Elements of one packed panel of A, and of a block of B. */
enum { GP_GEMM_ROWS = GP_MR_LARGEST * GP_LINE };

GP_FUNCTION int64_t gp_gemm_columns(int64_t n, int64_t k)
{
    return gp_round_up(gp_least(n, GP_NC_LARGEST), GP_NR_LARGEST) * gp_least(k, GP_KC);
}

/* Workspace of one thread for a product with at most n columns: elements. */
GP_FUNCTION int64_t gp_gemm_work(int64_t n, int64_t k)
{
    return GP_GEMM_ROWS + gp_gemm_columns(n, k);
}

GP_FUNCTION gp_matrix gp_matrix_at(gp_matrix a, int64_t i, int64_t j)
{
    a.at += i * a.row + j * a.col;
    return a;
}

/* Transposed: C' = B' A'. */
GP_FUNCTION gp_matrix gp_transposed(gp_matrix a)
{
    return (gp_matrix){a.at, a.col, a.row};
}

/* ---- Packing -------------------------------------------------------------------------------- */

/* Copies k elements, `step` apart, to a contiguous array. */
GP_FUNCTION void gp_copy(gp_real *restrict to, const gp_real *restrict from, int64_t step,
                         int64_t k)
{
    int64_t p = 0;
    if (GP_WAY(copy_apart, step != 1)) {
#if defined(GP_SHUFFLES)
        for (; step == -1 && p + 4 <= k; p += 4) {
            const gp_four back = *(const gp_four *)(from - p - 3);
            *(gp_four *)(to + p) = __builtin_shufflevector(back, back, 3, 2, 1, 0);
        }
#endif
        for (; p < k; p++)
            to[p] = from[p * step];
    }
#if defined(__GNUC__) /* a call of memcpy would take longer */
    for (; p + 2 * GP_LANES <= k; p += 2 * GP_LANES) {
        const gp_lanes left = *(const gp_lanes *)(from + p);
        const gp_lanes right = *(const gp_lanes *)(from + p + GP_LANES);
        *(gp_lanes *)(to + p) = left;
        *(gp_lanes *)(to + p + GP_LANES) = right;
    }
#endif
    for (; p < k; p++)
        to[p] = from[p];
}

/* Transposes lines of k elements to columns, 4 x 4 at a time: to[p * width + i] = from[i * line +
 * p]. */
static GP_NOINLINE void gp_pack_transposed(gp_real *restrict to, int64_t width,
                                           const gp_real *restrict from, int64_t lines,
                                           int64_t line, int64_t k)
{
    int64_t i = 0;
#if defined(GP_SHUFFLES)
    /* the last four lines may overlap those before */
    for (; lines >= 4 && i < lines; i += 4) {
        i = gp_least(i, lines - 4);
        const gp_real *at = from + i * line;
        int64_t p = 0;
        for (; p + 4 <= k; p += 4) {
            __builtin_prefetch(at + (4 + p / 4 % 4) * line + p / 16 * 16); /* the next four */
            const gp_four a = *(const gp_four *)(at + p), b = *(const gp_four *)(at + p + line);
            const gp_four c = *(const gp_four *)(at + p + 2 * line);
            const gp_four d = *(const gp_four *)(at + p + 3 * line);
            const gp_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            const gp_four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const gp_four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const gp_four cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            gp_real *out = to + p * width + i;
            *(gp_four *)out = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
            *(gp_four *)(out + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
            *(gp_four *)(out + 2 * width) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
            *(gp_four *)(out + 3 * width) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
        }
        for (; p < k; p++)
            for (int j = 0; j < 4; j++)
                to[p * width + i + j] = at[p + j * line];
    }
#endif
    for (; i < lines; i++)
        for (int64_t p = 0; p < k; p++)
            to[p * width + i] = from[i * line + p];
}

/* A panel of A: m rows of k elements, GP_LINE apart. */
static GP_NOINLINE void gp_pack_a(gp_real *restrict to, gp_matrix a, int64_t m, int64_t k)
{
    if (a.row == 1 && a.col != 1) {
        gp_pack_transposed(to, GP_LINE, a.at, k, a.col, m);
        return;
    }
    for (int64_t i = 0; i < m; i++, to += GP_LINE, a.at += a.row)
        gp_copy(to, a.at, a.col, k);
}

/* Packs row p (of k) of a block of B, n contiguous columns, into the panels. */
GP_FUNCTION void gp_pack_row(gp_real *restrict panel, const gp_real *restrict row, int64_t n,
                             int64_t p, int64_t k)
{
    panel += p * GP_NR;
    for (; n >= GP_NR; n -= GP_NR, row += GP_NR, panel += GP_NR * k) {
#if defined(__GNUC__) /* a call of memcpy would take longer */
        *(gp_lanes *)panel = *(const gp_lanes *)row;
        *(gp_lanes *)(panel + GP_LANES) = *(const gp_lanes *)(row + GP_LANES);
#else
        memcpy(panel, row, GP_NR * sizeof *panel);
#endif
    }
    if (n > 0)
        for (int64_t j = 0; j < GP_NR; j++)
            panel[j] = j < n ? row[j] : 0;
}

/* A block of B (k x n): panels of GP_NR columns. */
static GP_NOINLINE void gp_pack_b(gp_real *panel, gp_matrix b, int64_t k, int64_t n)
{
    if (b.col == 1) {
        for (int64_t p = 0; p < k; p++)
            gp_pack_row(panel, b.at + p * b.row, n, p, k);
        return;
    }
    for (int64_t j = 0; j < n; j += GP_NR, panel += GP_NR * k) {
        const int64_t lines = gp_least(GP_NR, n - j);
        if (lines < GP_NR)
            memset(panel, 0, (size_t)(GP_NR * k) * sizeof *panel);
        if (GP_WAY(pack_apart, b.row != 1))
            for (int64_t p = 0; p < k; p++)
                for (int64_t i = 0; i < lines; i++)
                    panel[p * GP_NR + i] = b.at[(j + i) * b.col + p * b.row];
        else
            gp_pack_transposed(panel, GP_NR, b.at + j * b.col, lines, b.col, k);
    }
}

/* ---- The product of two panels --------------------------------------------------------------- */

/* Prefetching while multiplying: one cache line of what is packed next at each step of the inner
 * dimension, `step` apart; after GP_AHEAD of them the next group is `jump` further. */
typedef struct {
    const gp_real *at;
    int64_t step, jump;
} gp_ahead;

enum { GP_AHEAD = 16 };

/* All that is packed next: `units` parts, `unit` apart. */
typedef struct {
    const gp_real *at;
    int64_t step, unit, units;
} gp_coming;

GP_FUNCTION gp_coming gp_coming_of(gp_matrix a, int64_t k)
{
    if (a.col == 1)
        return (gp_coming){a.at, a.row, 1, k};
    return (gp_coming){a.at, a.col, a.col, k};
}

/* The part to prefetch with columns j .. j + width - 1 of n, k deep. */
GP_FUNCTION gp_ahead gp_ahead_of(gp_coming a, int64_t k, int64_t j, int64_t width, int64_t n)
{
    const int64_t units = GP_AHEAD * a.units * width / (n * k);
    /* parts on different cache lines are all fetched, some more than once */
    const int64_t least = a.unit < GP_AHEAD ? 0 : 1;
    return (gp_ahead){a.at + j * a.units / n * a.unit, a.step,
                      (units > least ? units : least) * a.unit};
}

/* At most GP_MR rows of sums, GP_NR (gp_wide) or GP_LANES (gp_narrow) columns, stored to c or added
 * to it; b_step is the row stride of B. */
#if defined(__GNUC__)
#define GP_ROWS_1(X) X(0)
#define GP_ROWS_2(X) GP_ROWS_1(X) X(1)
#define GP_ROWS_3(X) GP_ROWS_2(X) X(2)
#define GP_ROWS_4(X) GP_ROWS_3(X) X(3)
#define GP_ROWS_5(X) GP_ROWS_4(X) X(4)
#define GP_ROWS_6(X) GP_ROWS_5(X) X(5)
#define GP_ROWS_7(X) GP_ROWS_6(X) X(6)
#define GP_ROWS_8(X) GP_ROWS_7(X) X(7)
#define GP_ROWS_9(X) GP_ROWS_8(X) X(8)
#define GP_ROWS_10(X) GP_ROWS_9(X) X(9)
#define GP_ROWS_11(X) GP_ROWS_10(X) X(10)
#define GP_ROWS_12(X) GP_ROWS_11(X) X(11)
#define GP_ROWS_13(X) GP_ROWS_12(X) X(12)
#define GP_ROWS_14(X) GP_ROWS_13(X) X(13)

#define GP_AT(i) (*(gp_lanes *)(c + i * row))
#define GP_AT_RIGHT(i) (*(gp_lanes *)(c + i * row + GP_LANES))
#define GP_FETCH(i) \
    __builtin_prefetch(c + i * row, 1), __builtin_prefetch(c + i * row + GP_NR - 1, 1);
#define GP_ZERO(i) gp_lanes left##i = {0};
#define GP_ADD(i) left##i += a[i * GP_LINE] * left;
#define GP_KEEP(i) GP_AT(i) = left##i;
#define GP_JOIN(i) GP_AT(i) += left##i;
#define GP_ZERO_2(i) gp_lanes left##i = {0}, right##i = {0};
#define GP_ADD_2(i) left##i += a[i * GP_LINE] * left, right##i += a[i * GP_LINE] * right;
#define GP_KEEP_2(i) GP_AT(i) = left##i, GP_AT_RIGHT(i) = right##i;
#define GP_JOIN_2(i) GP_AT(i) += left##i, GP_AT_RIGHT(i) += right##i;

/* Under -std=c11 gcc does not contract to FMA, which would halve the speed. */
#if defined(__FMA__) && !defined(__clang__)
#define GP_FUSED __attribute__((optimize("fp-contract=fast")))
#else
#define GP_FUSED
#endif

/* The loop over the inner dimension, in blocks of GP_AHEAD, with one prefetch in each step. */
#define GP_STEPS(each)                                                \
    const gp_real *far = ahead->at;                                   \
    for (int64_t p = 0; p < k; far += ahead->jump) {                  \
        const int64_t end = gp_least(p + GP_AHEAD, k);                \
        const gp_real *line = far;                                    \
        for (; p < end; p++, a++, b += b_step, line += ahead->step) { \
            __builtin_prefetch(line, 0, 2);                           \
            each                                                      \
        }                                                             \
    }

#define GP_LEFT const gp_lanes left = *(const gp_lanes *)b;
#define GP_BOTH                                                       \
    GP_LEFT const gp_lanes right = *(const gp_lanes *)(b + GP_LANES); \
    __builtin_prefetch(b + 12 * b_step);                              \
    __builtin_prefetch(b + 12 * b_step + GP_LANES);
#define GP_MICROKERNEL(name, rows, LOAD, ZERO, ADD, JOIN, KEEP)                                 \
    static GP_NOINLINE GP_FUSED void name(gp_real *c, int64_t row, const gp_real *a,            \
                                          const gp_real *b, int64_t b_step, int64_t k, int add, \
                                          const gp_ahead *ahead)                                \
    {                                                                                           \
        rows(GP_FETCH) rows(ZERO) GP_STEPS(LOAD rows(ADD)) if (add)                             \
        {                                                                                       \
            rows(JOIN)                                                                          \
        }                                                                                       \
        else                                                                                    \
        {                                                                                       \
            rows(KEEP)                                                                          \
        }                                                                                       \
    }
#define GP_PRODUCT(h)                                                                            \
    GP_MICROKERNEL(gp_wide_##h, GP_ROWS_##h, GP_BOTH, GP_ZERO_2, GP_ADD_2, GP_JOIN_2, GP_KEEP_2) \
    GP_MICROKERNEL(gp_narrow_##h, GP_ROWS_##h, GP_LEFT, GP_ZERO, GP_ADD, GP_JOIN, GP_KEEP)

#define GP_HEIGHTS_6(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define GP_HEIGHTS_12(X) GP_HEIGHTS_6(X) X(7) X(8) X(9) X(10) X(11) X(12)
#define GP_HEIGHTS_14(X) GP_HEIGHTS_12(X) X(13) X(14)
#if GP_MR == 14
#define GP_HEIGHTS(X) GP_HEIGHTS_14(X)
#elif GP_MR == 12
#define GP_HEIGHTS(X) GP_HEIGHTS_12(X)
#else
#define GP_HEIGHTS(X) GP_HEIGHTS_6(X)
#endif
GP_HEIGHTS(GP_PRODUCT)

GP_FUNCTION void gp_panel_product(gp_real *c, int64_t row, const gp_real *a, int64_t rows,
                                  const gp_real *b, int64_t b_step, int64_t columns, int64_t k,
                                  int add, const gp_ahead *ahead)
{
    const int wide = columns > GP_LANES;
    switch (rows) {
#define GP_CASE(h)                                              \
    case h:                                                     \
        if (wide)                                               \
            gp_wide_##h(c, row, a, b, b_step, k, add, ahead);   \
        else                                                    \
            gp_narrow_##h(c, row, a, b, b_step, k, add, ahead); \
        break;
        GP_HEIGHTS(GP_CASE)
#undef GP_CASE
    }
}
#else
GP_FUNCTION void gp_panel_product(gp_real *c, int64_t row, const gp_real *a, int64_t rows,
                                  const gp_real *b, int64_t b_step, int64_t columns, int64_t k,
                                  int add, const gp_ahead *ahead)
{
    gp_real sum[GP_MR][GP_NR] = {{0}};
    const int width = columns > GP_LANES ? GP_NR : GP_LANES;
    (void)ahead; /* there is no way to prefetch */
    for (int64_t p = 0; p < k; p++, a++, b += b_step)
        for (int64_t i = 0; i < rows; i++)
            for (int j = 0; j < width; j++)
                sum[i][j] += a[i * GP_LINE] * b[j];
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < width; j++)
            c[i * row + j] = add ? c[i * row + j] + sum[i][j] : sum[i][j];
}
#endif

/* Columns that do not fill a vector cost as much as a full one. Up to GP_FEW are dot products along
 * the inner dimension instead: c[i * row] = row i of A times the contiguous column at b, four rows
 * at a time. */
enum { GP_FEW = GP_BLOCK(4, 2) };

/* Both sides of a branch for the last few of n, where the vector width decides whether there are
 * any. */
GP_FUNCTION void gp_few_ways(gp_ways *ways, const char *name, int64_t n)
{
    gp_way(ways, name, 0);
    if (GP_TINY || n % 8 != 0)
        gp_way(ways, name, 1);
}

#if defined(__GNUC__)
static GP_NOINLINE GP_FUSED void gp_few_product(gp_real *c, int64_t row, const gp_real *a,
                                                int64_t rows, const gp_real *b, int64_t k)
{
    enum { LANES = GP_LANES > 4 ? GP_LANES : 4, ROWS = 4 };
    typedef gp_real four
        __attribute__((vector_size(4 * sizeof(gp_real)), aligned(sizeof(gp_real)), may_alias));
    for (int64_t i = 0; i < rows; i += ROWS) {
        /* the last four may overlap those before */
        i = rows < ROWS ? 0 : gp_least(i, rows - ROWS);
        gp_lanes sum[ROWS] = {{0}}, other[ROWS] = {{0}};
        gp_real lane[LANES * ROWS] = {0};
        const gp_real *at = a + i * GP_LINE;
        int64_t p = 0;
        for (; p + 2 * GP_LANES <= k; p += 2 * GP_LANES) {
            const gp_lanes left = *(const gp_lanes *)(b + p);
            const gp_lanes right = *(const gp_lanes *)(b + p + GP_LANES);
            for (int j = 0; j < ROWS; j++) {
                sum[j] += left * *(const gp_lanes *)(at + j * GP_LINE + p);
                other[j] += right * *(const gp_lanes *)(at + j * GP_LINE + p + GP_LANES);
            }
        }
        for (int j = 0; j < ROWS; j++)
            *(gp_lanes *)(lane + j * LANES) = sum[j] + other[j];
        for (; p < k; p++)
            for (int j = 0; j < ROWS; j++)
                lane[j * LANES] += b[p] * at[j * GP_LINE + p];
        for (int j = 0; j < ROWS && i + j < rows; j++) {
            four total = *(const four *)(lane + j * LANES);
            for (int l = 4; l < LANES; l += 4)
                total += *(const four *)(lane + j * LANES + l);
            c[(i + j) * row] = (total[0] + total[1]) + (total[2] + total[3]);
        }
    }
}
#else
GP_FUNCTION void gp_few_product(gp_real *c, int64_t row, const gp_real *a, int64_t rows,
                                const gp_real *b, int64_t k)
{
    for (int64_t i = 0; i < rows; i++, a += GP_LINE, c += row) {
        *c = 0;
        for (int64_t p = 0; p < k; p++)
            *c += a[p] * b[p];
    }
}
#endif

#endif
