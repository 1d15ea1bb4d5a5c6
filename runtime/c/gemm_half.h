/* The matrix product of 16-bit numbers, summed in f32: C = A B or C += A B.
 *
 * An operand that is f32 is rounded while it is packed, so a parameter needs no second copy. Sums
 * are those of gemm.h but for one thing: of each pair of the inner dimension the second product is
 * added before the first, as vdpbf16ps does (with a rounding after each: the product of two bf16
 * is exact in f32). Where the compiler does not target that, and for f16, panels are f32 with pairs
 * swapped: the same bits. Subnormals are the exception: vdpbf16ps takes them for 0, as operands and
 * as sums; the other way keeps them. */
#ifndef GP_GEMM_HALF_H
#define GP_GEMM_HALF_H

#include "gemm.h"
#include "narrow.h"

#if defined(__AVX512BF16__) && GP_VECTOR_BYTES == 64 && !defined(GP_WIDE)
#define GP_DOTS
typedef int gp_pair __attribute__((may_alias));
typedef uint32_t gp_pair_lanes __attribute__((vector_size(64), aligned(4), may_alias));
#endif

enum {
    GP_HALF_STRIP = GP_BLOCK(1008, 30), /* rows whose sums are kept aside at once */
    GP_HALF_ROWS = GP_MR > 8 ? 16 : 8   /* that are packed at once: no panel of A has more */
};

/* Element (i, j) is number i * row + j * col from `at`, of this type. */
typedef struct {
    const void *at;
    int64_t row, col;
    int32_t type;
} gp_reals;

GP_FUNCTION gp_reals gp_reals_at(gp_reals a, int64_t i, int64_t j)
{
    a.at = (const char *)a.at + (i * a.row + j * a.col) * (int64_t)gp_size(a.type);
    return a;
}

/* The same in another product of a batch, `from` elements on. */
GP_FUNCTION gp_reals gp_reals_from(gp_reals a, int64_t i, int64_t j, int64_t from)
{
    a = gp_reals_at(a, i, j);
    a.at = (const char *)a.at + from * (int64_t)gp_size(a.type);
    return a;
}

/* A matrix whose `at` is of this type. */
GP_FUNCTION gp_reals gp_reals_of(gp_matrix a, int type)
{
    return (gp_reals){a.at, a.row, a.col, type};
}

/* n elements, `step` apart, as 16-bit numbers of type `half`. */
GP_FUNCTION void gp_halve(gp_half *restrict to, gp_reals a, int64_t step, int64_t n, int half)
{
    const gp_real *real = (const gp_real *)a.at;
    const gp_half *same = (const gp_half *)a.at;
    if (a.type != GP_F32 && step == 1) { /* a call of memcpy would take longer */
        int64_t i = 0;
        for (; i + GP_HALF_ROWS <= n; i += GP_HALF_ROWS)
            memcpy(to + i, same + i, GP_HALF_ROWS * sizeof *to);
        for (; i < n; i++)
            to[i] = same[i];
    } else if (a.type != GP_F32) {
        for (int64_t i = 0; i < n; i++)
            to[i] = same[i * step];
    } else if (step == 1) {
        gp_set_row(to, real, n, half);
    } else if (half == GP_BF16) {
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_bf16(real[i * step]);
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_f16(real[i * step]);
    }
}

/* n of them as reals. */
GP_FUNCTION void gp_widen_line(gp_real *restrict to, const gp_half *restrict from, int64_t n,
                               int half)
{
    if (half == GP_BF16)
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_from_bf16(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_from_f16(from[i]);
}

/* ---- Panels ---------------------------------------------------------------------------------- */

/* Whether an element of a panel is a pair of bf16 (one that has no second has 0), or a real. */
GP_FUNCTION int gp_dots(int half)
{
#if defined(GP_DOTS)
    return half == GP_BF16;
#else
    (void)half;
    return 0;
#endif
}

/* Elements of a panel, k deep. */
GP_FUNCTION int64_t gp_units(int64_t k, int half)
{
    return gp_dots(half) ? (k + 1) / 2 : k;
}

/* One line of k numbers along the inner dimension, a real each. */
GP_FUNCTION void gp_unit_reals(gp_real *restrict to, const gp_half *restrict from, int64_t k,
                               int half)
{
    gp_real wide[GP_KC];
    int64_t p = 0;
    gp_widen_line(wide, from, k, half);
    for (; p + 2 <= k; p += 2) {
        to[p] = wide[p + 1];
        to[p + 1] = wide[p];
    }
    if (p < k)
        to[p] = wide[p];
}

/* The units of a line of k numbers. */
GP_FUNCTION void gp_unit_line(gp_real *to, gp_reals a, int64_t step, int64_t k, int half)
{
    gp_half line[GP_KC + GP_HALF_ROWS];
    gp_half *const own = gp_dots(half) ? (gp_half *)to : line;
    gp_halve(own, a, step, k, half);
    if (!gp_dots(half))
        gp_unit_reals(to, line, k, half);
    else if (k % 2)
        own[k] = 0;
}

/* m of `wide` numbers that lie side by side, as the reals that 16 bits hold; 0 behind them. */
GP_FUNCTION void gp_rounded_across(gp_real *restrict to, gp_reals a, int64_t m, int wide, int half)
{
    if (a.type != GP_F32)
        gp_widen_line(to, (const gp_half *)a.at, m, half);
    else
        gp_round_run(to, (const gp_real *)a.at, 1, m, half);
    for (int64_t i = m; i < wide; i++)
        to[i] = 0;
}

/* The units of m lines at elements p and p + 1 of the k along the inner dimension, where lines are
 * what lies side by side: unit_0[i], and unit_1[i] where a unit is one real, of `wide`. */
GP_FUNCTION void gp_unit_across(gp_real *unit_0, gp_real *unit_1, gp_reals a, int64_t p, int64_t k,
                                int64_t m, int wide, int half)
{
    const int64_t p1 = p + 1 < k ? p + 1 : p;
#if defined(GP_DOTS)
    if (half == GP_BF16) {
        const int as_is = a.type != GP_F32 && m == wide;
        gp_half copy[2][GP_NR_LARGEST] = {{0}};
        const gp_half *first = gp_reals_at(a, 0, p).at, *second = gp_reals_at(a, 0, p1).at;
        gp_pair *to = (gp_pair *)unit_0;
        const uint32_t is_there = p1 > p ? 0xffff0000u : 0;
        if (!as_is) {
            gp_halve(copy[0], gp_reals_at(a, 0, p), 1, m, half);
            gp_halve(copy[1], gp_reals_at(a, 0, p1), 1, m, half);
            first = copy[0];
            second = copy[1];
        }
        for (int i = 0; i < wide; i++)
            to[i] = (gp_pair)(((uint32_t)second[i] << 16 & is_there) | first[i]);
        return;
    }
#endif
    gp_rounded_across(unit_0, gp_reals_at(a, 0, p1), m, wide, half);
    if (p1 > p)
        gp_rounded_across(unit_1, gp_reals_at(a, 0, p), m, wide, half);
}

/* A panel of A: m rows, GP_LINE units apart. */
static GP_NOINLINE void gp_half_pack_a(gp_real *restrict to, gp_reals a, int64_t m, int64_t k,
                                       int half)
{
    gp_real units[GP_KC][GP_HALF_ROWS];
    if (a.row == 1 && a.col != 1) {
        for (int64_t p = 0; p < k; p += 2)
            gp_unit_across(units[gp_dots(half) ? p / 2 : p], units[gp_dots(half) ? p / 2 : p + 1],
                           a, p, k, m, GP_HALF_ROWS, half);
        gp_pack_transposed(to, GP_LINE, units[0], gp_units(k, half), GP_HALF_ROWS, m);
        return;
    }
    for (int64_t i = 0; i < m; i++)
        gp_unit_line(to + i * GP_LINE, gp_reals_at(a, i, 0), a.col, k, half);
}

/* A block of B (k x n): panels of GP_NR columns. */
static GP_NOINLINE void gp_half_pack_b(gp_real *panel, gp_reals b, int64_t k, int64_t n, int half)
{
    const int64_t deep = gp_units(k, half);
    for (int64_t j = 0; j < n; j += GP_NR, panel += GP_NR * deep) {
        const int64_t lines = gp_least(GP_NR, n - j);
        gp_real units[GP_NR][GP_KC];
        if (b.col == 1) {
            gp_reals across = gp_reals_at(b, 0, j);
            across = (gp_reals){across.at, across.col, across.row, across.type};
            for (int64_t p = 0; p < k; p += 2) {
                gp_real *to = panel + (gp_dots(half) ? p / 2 : p) * GP_NR;
                gp_unit_across(to, to + GP_NR, across, p, k, lines, GP_NR, half);
            }
            continue;
        }
        if (lines < GP_NR)
            memset(panel, 0, (size_t)(GP_NR * deep) * sizeof *panel);
        for (int64_t i = 0; i < lines; i++)
            gp_unit_line(units[i], gp_reals_at(b, 0, j + i), b.row, k, half);
        gp_pack_transposed(panel, GP_NR, units[0], lines, GP_KC, deep);
    }
}

/* ---- Panels that were packed as reals, each of which 16 bits hold ------------------------------
 */

/* Columns of a block of B, k deep: their units, which take the place of the panels. */
static GP_NOINLINE void gp_half_columns_of(gp_real *panels, int64_t n, int64_t k, int half)
{
    const int64_t deep = gp_units(k, half);
    for (int64_t j = 0; j < n; j += GP_NR) {
        gp_real *to = panels + j * deep;
        const gp_real *from = panels + j * k;
        for (int64_t p = 0; p < k; p += 2, from += 2 * GP_NR) {
#if defined(GP_DOTS)
            const uint32_t is_there = p + 1 < k ? 0xffff0000u : 0;
            const int64_t next = p + 1 < k ? GP_NR : 0;
            for (int i = 0; half == GP_BF16 && i < GP_NR; i += GP_LANES) {
                const gp_pair_lanes first = *(const gp_pair_lanes *)(from + i);
                const gp_pair_lanes second = *(const gp_pair_lanes *)(from + next + i);
                *(gp_pair_lanes *)(to + p / 2 * GP_NR + i) = (second & is_there) | first >> 16;
            }
#endif
            for (int i = 0; !gp_dots(half) && p + 1 < k && i < GP_NR; i++) {
                const gp_real first = from[i];
                to[p * GP_NR + i] = from[GP_NR + i];
                to[(p + 1) * GP_NR + i] = first;
            }
        }
    }
}

/* The same of a panel of A: m rows, GP_LINE apart. */
static GP_NOINLINE void gp_half_rows_of(gp_real *rows, int64_t m, int64_t k, int half)
{
    for (int64_t i = 0; i < m; i++, rows += GP_LINE) {
        gp_real line[GP_KC];
        memcpy(line, rows, (size_t)k * sizeof *line);
        gp_unit_line(rows, (gp_reals){line, 0, 1, GP_F32}, 1, k, half);
    }
}

/* ---- The product of two panels ----------------------------------------------------------------
 */

#if defined(GP_DOTS)
typedef int gp_pairs __attribute__((vector_size(64), aligned(4), may_alias));
typedef float gp_dot_sums __attribute__((vector_size(64)));
#if defined(__clang__) ? __clang_major__ >= 16 : __GNUC__ >= 13
typedef __bf16 gp_dot_operand __attribute__((vector_size(64)));
#elif defined(__clang__)
typedef int gp_dot_operand __attribute__((vector_size(64)));
#else
typedef short gp_dot_operand __attribute__((vector_size(64)));
#endif
#if defined(__clang__)
#define GP_DOT_BUILTIN __builtin_ia32_dpbf16ps_512
#else
#define GP_DOT_BUILTIN __builtin_ia32_dpbf16ps_v16sf
#endif
#define GP_DOT(sum, x, y) \
    (gp_lanes) GP_DOT_BUILTIN((gp_dot_sums)(sum), (gp_dot_operand)(x), (gp_dot_operand)(y))
#define GP_DOT_2(i)                                        \
    {                                                      \
        const gp_pairs x = (gp_pairs){0} + a[i * GP_LINE]; \
        left##i = GP_DOT(left##i, x, left);                \
        right##i = GP_DOT(right##i, x, right);             \
    }
#define GP_DOT_BOTH                                           \
    const gp_pairs left = *(const gp_pairs *)b;               \
    const gp_pairs right = *(const gp_pairs *)(b + GP_LANES); \
    __builtin_prefetch(b + 12 * b_step);                      \
    __builtin_prefetch(b + 12 * b_step + GP_LANES);
#define GP_DOT_PRODUCT(rows)                                                          \
    static GP_NOINLINE void gp_dots_##rows(gp_real *c, int64_t row, const gp_pair *a, \
                                           const gp_pair *b, int64_t k, int add,      \
                                           const gp_ahead *ahead)                     \
    {                                                                                 \
        const int64_t b_step = GP_NR;                                                 \
        GP_ROWS_##rows(GP_FETCH) GP_ROWS_##rows(GP_ZERO_2)                            \
            GP_STEPS(GP_DOT_BOTH GP_ROWS_##rows(GP_DOT_2)) if (add)                   \
        {                                                                             \
            GP_ROWS_##rows(GP_JOIN_2)                                                 \
        }                                                                             \
        else                                                                          \
        {                                                                             \
            GP_ROWS_##rows(GP_KEEP_2)                                                 \
        }                                                                             \
    }
GP_HEIGHTS(GP_DOT_PRODUCT)
#endif

/* c (m x GP_NR) = or += a panel of A times one of B, `deep` units. */
GP_FUNCTION void gp_half_panel(gp_real *c, int64_t row, const gp_real *a, int64_t m,
                               const gp_real *b, int64_t deep, int half, int add,
                               const gp_ahead *ahead)
{
#if defined(GP_DOTS)
    if (half == GP_BF16) {
        switch (m) {
#define GP_DOT_CASE(h)                                                                 \
    case h:                                                                            \
        gp_dots_##h(c, row, (const gp_pair *)a, (const gp_pair *)b, deep, add, ahead); \
        break;
            GP_HEIGHTS(GP_DOT_CASE)
#undef GP_DOT_CASE
        }
        return;
    }
#endif
    (void)half;
    gp_panel_product(c, row, a, m, b, GP_NR, GP_NR, deep, add, ahead);
}

/* ---- Blocks -----------------------------------------------------------------------------------
 */

/* Columns of C, m x n, = or += a panel of A times one of B. */
GP_FUNCTION void gp_half_into(gp_matrix c, const gp_real *rows, int64_t m, const gp_real *b,
                              int64_t n, int64_t deep, int half, int add, const gp_ahead *ahead)
{
    gp_real tile[GP_MR * GP_NR];
    if (c.col == 1 && n == GP_NR) {
        gp_half_panel(c.at, c.row, rows, m, b, deep, half, add, ahead);
        return;
    }
    gp_half_panel(tile, GP_NR, rows, m, b, deep, half, 0, ahead);
    gp_tile_store(c, tile, m, n, add);
}

/* A panel of A that is packed next, k deep, to prefetch: its elements may be narrower than reals.
 */
GP_FUNCTION gp_coming gp_half_coming(gp_reals a, int64_t k)
{
    const int64_t size = (int64_t)gp_size(a.type), real = (int64_t)sizeof(gp_real);
    const int along = a.col == 1;
    const gp_matrix as_reals = {(gp_real *)a.at, a.row * size / real,
                                along ? 1 : a.col * size / real};
    return gp_coming_of(as_reals, along ? k * size / real : k);
}

/* C (m x n, f32) = or += A times packed columns, k deep: one block of the inner dimension. */
GP_FUNCTION void gp_half_block(gp_matrix c, gp_reals a, const gp_real *columns, int64_t m,
                               int64_t n, int64_t k, int half, int add, gp_real *rows,
                               gp_ending end)
{
    const int64_t deep = gp_units(k, half);
    for (int64_t i = 0, from = 0, to; from < m; from = to) {
        to = gp_panel_begin(++i, m);
        gp_half_pack_a(rows, gp_reals_at(a, from, 0), to - from, k, half);
        const gp_coming next = gp_half_coming(gp_reals_at(a, to < m ? to : from, 0), k);
        for (int64_t j = 0; j < n; j += GP_NR) {
            const int64_t width = gp_least(GP_NR, n - j);
            const gp_ahead ahead = gp_ahead_of(next, deep, j, width, n);
            gp_half_into(gp_matrix_at(c, from, j), rows, to - from, columns + j * deep, width, deep,
                         half, add, &ahead);
        }
        gp_finish(gp_ending_at(end, from, 0), gp_matrix_at(c, from, 0), to - from, n);
    }
}

/* How deep a block is of products that are k deep: pairs lie in one block. */
GP_FUNCTION int64_t gp_half_depth(int64_t k)
{
    return gp_round_up(gp_even(k, GP_KC), 2);
}

/* Packs n columns of B, however deep: block after block. */
GP_FUNCTION void gp_half_pack_columns(gp_real *to, gp_reals b, int64_t k, int64_t n, int half)
{
    const int64_t depth = gp_half_depth(k);
    for (int64_t p = 0, some; p < k; p += some) {
        some = gp_least(depth, k - p);
        gp_half_pack_b(to, gp_reals_at(b, p, 0), some, n, half);
        to += gp_units(some, half) * gp_round_up(n, GP_NR);
    }
}

/* C (f32) = A times columns that were packed so, with GP_GEMM_ROWS elements of workspace. */
GP_FUNCTION void gp_half_columns(gp_matrix c, gp_reals a, const gp_real *columns, int64_t m,
                                 int64_t n, int64_t k, int half, gp_real *rows)
{
    const int64_t depth = gp_half_depth(k);
    for (int64_t p = 0, some; p < k; p += some) {
        some = gp_least(depth, k - p);
        gp_half_block(c, gp_reals_at(a, 0, p), columns, m, n, some, half, p > 0, rows,
                      (gp_ending){0});
        columns += gp_units(some, half) * gp_round_up(n, GP_NR);
    }
}

/* C (f32) = or += A B: the task of a thread, with gp_gemm_work elements of workspace. */
static GP_NOINLINE void gp_half_gemm(gp_matrix c, gp_reals a, gp_reals b, int64_t m, int64_t n,
                                     int64_t k, int half, int add, gp_real *work, gp_ending end)
{
    gp_real *rows = work, *packed = work + GP_GEMM_ROWS;
    const int64_t across = gp_round_up(gp_even(n, GP_NC), GP_NR), depth = gp_half_depth(k);
    for (int64_t j = 0; j < n; j += across)
        for (int64_t p = 0; p < k; p += depth) {
            const int64_t width = gp_least(across, n - j), some = gp_least(depth, k - p);
            gp_ending here = {0}; /* nothing is final before the last block of k */
            if (p + some == k)
                here = gp_ending_at(end, 0, j);
            gp_half_pack_b(packed, gp_reals_at(b, p, j), some, width, half);
            gp_half_block(gp_matrix_at(c, 0, j), gp_reals_at(a, 0, p), packed, m, width, some, half,
                          add || p > 0, rows, here);
        }
}

/* Elements of workspace of one thread for a product of at most `most` rows and as many columns:
 * both ways of packing, and sums that are kept aside. */
GP_FUNCTION int64_t gp_half_work(int64_t most, int64_t k)
{
    const int64_t strip = gp_least(most, GP_HALF_STRIP) * gp_least(most, GP_NC_LARGEST);
    return gp_round_up(gp_gemm_work(most, k), 16) + gp_round_up(strip, 16);
}

/* C of any real type. Where it is narrow, or what follows reads what it lies over, sums lie in a
 * strip until they are final and what follows has run. */
static GP_NOINLINE void gp_half_product(gp_reals c, gp_reals a, gp_reals b, int64_t m, int64_t n,
                                        int64_t k, int half, gp_real *work, gp_ending end)
{
    gp_real *strip = work + gp_round_up(gp_gemm_work(n, k), 16);
    if (c.type == GP_F32 && !end.call->aside) {
        gp_half_gemm((gp_matrix){(gp_real *)c.at, c.row, c.col}, a, b, m, n, k, half, 0, work, end);
        return;
    }
    for (int64_t j = 0; j < n; j += GP_NC)
        for (int64_t i = 0; i < m; i += GP_HALF_STRIP) {
            const int64_t some = gp_least(GP_HALF_STRIP, m - i), width = gp_least(GP_NC, n - j);
            const gp_matrix sums = {strip, width, 1};
            gp_half_gemm(sums, gp_reals_at(a, i, 0), gp_reals_at(b, 0, j), some, width, k, half, 0,
                         work, (gp_ending){0});
            gp_finish(gp_ending_at(end, i, j), sums, some, width);
            for (int64_t r = 0; r < some; r++) {
                char *to = (char *)gp_reals_at(c, i + r, j).at;
                if (c.col == 1)
                    gp_set_row(to, strip + r * width, width, c.type);
                else
                    for (int64_t l = 0; l < width; l++)
                        gp_set_real(to, l * c.col, c.type, strip[r * width + l]);
            }
        }
}

#endif
