/* The reductions of pooling: columns are reduced down the rows, then outputs along the resulting
 * lines, or both at once for pairs of columns. */
#ifndef GP_POOL_JOIN_H
#define GP_POOL_JOIN_H

#include "vector.h"
#include "window.h"

enum { GP_POOL_SOON = 128, GP_POOL_LATER = 6144 }; /* prefetch distance */

/* Prefetches a vector that is needed soon. */
GP_FUNCTION void gp_pool_ask(const gp_real *x)
{
#if defined(__GNUC__)
    __builtin_prefetch(x + GP_POOL_SOON);
    __builtin_prefetch(x + GP_POOL_LATER, 0, 2);
#else
    (void)x;
#endif
}

/* How two elements are combined: their sum, the maximum, or the maximum of two finite ones, which
 * is shorter. A NaN is kept. */
enum { GP_POOL_SUM, GP_POOL_MAX, GP_POOL_FINITE };

GP_FUNCTION gp_real gp_pool_join(gp_real old, gp_real v, int how)
{
    return how == GP_POOL_SUM ? old + v : ((v > old) | (v != v)) ? v : old;
}

GP_FUNCTION gp_real gp_pool_none(int how)
{
    return how == GP_POOL_SUM ? 0 : -(gp_real)INFINITY;
}

#if defined(__GNUC__)
/* join = v where `yes`, for vectors of `type`. */
#define GP_POOL_CHOOSE(type, join, v, yes)                                                      \
    do {                                                                                        \
        const __typeof__((v) > (join)) more_ = yes;                                             \
        join = (type)((more_ & (__typeof__(more_))(v)) | (~more_ & (__typeof__(more_))(join))); \
    } while (0)

/* a > b ? a : b of floats: clang finds the instruction from masks, gcc needs the intrinsic. */
#if !defined(__clang__) && defined(__AVX512F__)
#define GP_POOL_LARGER(a, b) __builtin_ia32_maxps512_mask(a, b, a, (unsigned short)-1, 4)
#elif !defined(__clang__) && defined(__AVX__)
#define GP_POOL_LARGER(a, b) __builtin_ia32_maxps256(a, b)
#elif !defined(__clang__) && defined(__SSE2__)
#define GP_POOL_LARGER(a, b) __builtin_ia32_maxps(a, b)
#endif

/* join = v > join ? v : join */
#if defined(GP_POOL_LARGER)
typedef float gp_pool_floats __attribute__((vector_size(GP_VECTOR_BYTES)));
#define GP_POOL_TAKE(type, join, v)                      \
    do {                                                 \
        if (sizeof(gp_real) == sizeof(float)) {          \
            gp_pool_floats a_, b_;                       \
            memcpy(&a_, &(v), sizeof a_);                \
            memcpy(&b_, &(join), sizeof b_);             \
            b_ = GP_POOL_LARGER(a_, b_);                 \
            memcpy(&(join), &b_, sizeof b_);             \
        } else {                                         \
            GP_POOL_CHOOSE(type, join, v, (v) > (join)); \
        }                                                \
    } while (0)
#else
#define GP_POOL_TAKE(type, join, v) GP_POOL_CHOOSE(type, join, v, (v) > (join))
#endif

#define GP_POOL_JOIN(type, join, v, how)                                  \
    do {                                                                  \
        if ((how) == GP_POOL_SUM)                                         \
            join += (v);                                                  \
        else if ((how) == GP_POOL_FINITE)                                 \
            GP_POOL_TAKE(type, join, v);                                  \
        else                                                              \
            GP_POOL_CHOOSE(type, join, v, ((v) > (join)) | ((v) != (v))); \
    } while (0)

/* n adjacent columns, each reduced down its `rows` elements, `row` apart; the first `seen` rows
 * were checked with the windows above. Non-finite elements make `check` NaN. The last vector may
 * overlap the one before. */
GP_FUNCTION void gp_pool_down_lanes(gp_real *restrict to, int64_t n, const gp_real *restrict from,
                                    int64_t rows, int64_t row, int64_t seen,
                                    gp_real *restrict check, int how)
{
    gp_lanes zero = {0}; /* of this row alone: a shorter dependency chain */
    for (int64_t i = 0; i < n; i += GP_LANES) {
        const int64_t at = i + GP_LANES <= n ? i : n - GP_LANES;
        gp_lanes column = *(const gp_lanes *)(from + at);
        for (int64_t k = 0; k < rows; k++) {
            const gp_lanes v = *(const gp_lanes *)(from + k * row + at);
            if (k > 0)
                GP_POOL_JOIN(gp_lanes, column, v, how);
            if (k >= seen && how == GP_POOL_FINITE)
                zero += v * 0;
            if (k >= seen)
                gp_pool_ask(from + k * row + at);
        }
        *(gp_lanes *)(to + at) = column;
    }
    *(gp_lanes *)check += zero;
}

/* n outputs of adjacent windows, from their reduced columns. */
GP_FUNCTION void gp_pool_along_lanes(gp_real *restrict to, int64_t n, const gp_real *restrict line,
                                     int64_t kernel, int how)
{
    for (int64_t i = 0; i < n; i += GP_LANES) {
        const int64_t at = i + GP_LANES <= n ? i : n - GP_LANES;
        gp_lanes join = *(const gp_lanes *)(line + at);
        for (int64_t k = 1; k < kernel; k++) {
            const gp_lanes v = *(const gp_lanes *)(line + at + k);
            GP_POOL_JOIN(gp_lanes, join, v, how);
        }
        *(gp_lanes *)(to + at) = join;
    }
}
#endif

#if defined(GP_SHUFFLES)
/* The same for windows two apart, of at least two columns, deinterleaved two vectors at a time. A
 * single one left comes with the one before, which is skipped. */
GP_FUNCTION void gp_pool_along_pairs(gp_real *restrict to, int64_t n, const gp_real *restrict line,
                                     int64_t kernel, int how)
{
    for (int64_t i = 0; i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        gp_zip_lanes join = {0};
        for (int64_t k = 0; k < kernel; k += 2) {
            const int both = k + 1 < kernel;
            const gp_zip_lanes *two = (const gp_zip_lanes *)(line + 2 * at + k - !both);
            const gp_zip_lanes a = two[0], b = two[1];
            const gp_zip_lanes even = __builtin_shufflevector(a, b, GP_EVENS);
            const gp_zip_lanes odd = __builtin_shufflevector(a, b, GP_ODDS);
            if (k == 0)
                join = even;
            else if (both)
                GP_POOL_JOIN(gp_zip_lanes, join, even, how);
            GP_POOL_JOIN(gp_zip_lanes, join, odd, how);
        }
        *(gp_zip_lanes *)(to + at) = join;
    }
}

/* Rows of outputs whose windows are two or three columns wide and two apart, in one pass: pairs of
 * columns are reduced down the rows, then deinterleaved, and the third column is the one before the
 * next pair. `from`: the pair of output 0; `before`: whether the column before it is inside. */
GP_FUNCTION void gp_pool_pairs(gp_real *restrict to, int64_t n, const gp_real *restrict from,
                               int before, int64_t rows, int64_t row, int64_t seen, int64_t kernel,
                               gp_real share, gp_real *restrict check, int how)
{
    gp_zip_lanes zero = {0}; /* of this row alone: a shorter dependency chain */
    for (int64_t i = 0; i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        const gp_real *two = from + 2 * at;
        gp_zip_lanes a = {0}, b = {0}, c = (gp_zip_lanes){0} + gp_pool_none(how);
        for (int64_t k = 0; k < rows; k++, two += row) {
            const gp_zip_lanes p = ((const gp_zip_lanes *)two)[0];
            const gp_zip_lanes q = ((const gp_zip_lanes *)two)[1];
            if (k == 0) {
                a = p;
                b = q;
            } else {
                GP_POOL_JOIN(gp_zip_lanes, a, p, how);
                GP_POOL_JOIN(gp_zip_lanes, b, q, how);
            }
            if (kernel == 3 && (at > 0 || before)) {
                const gp_zip_lanes r = (gp_zip_lanes){0} + two[-1];
                GP_POOL_JOIN(gp_zip_lanes, c, r, how);
                if (how == GP_POOL_FINITE && at == 0) /* the others are in pairs */
                    zero += r * 0;
            }
            if (k >= seen) {
                if (how == GP_POOL_FINITE)
                    zero += (p + q) * 0;
                gp_pool_ask(two);
                gp_pool_ask(two + GP_ZIP_LANES);
            }
        }
        const gp_zip_lanes odd = __builtin_shufflevector(a, b, GP_ODDS);
        gp_zip_lanes join = __builtin_shufflevector(a, b, GP_EVENS);
        if (kernel == 3) {
            const gp_zip_lanes third = __builtin_shufflevector(c, odd, GP_BEFORE);
            GP_POOL_JOIN(gp_zip_lanes, join, third, how);
        }
        GP_POOL_JOIN(gp_zip_lanes, join, odd, how);
        if (how == GP_POOL_SUM)
            join *= share;
        *(gp_zip_lanes *)(to + at) = join;
    }
    *(gp_zip_lanes *)check += zero;
}
#endif

/* The same for columns `step` apart and for windows of any stride, in loops that maxima share. */
static GP_NOINLINE void gp_pool_down_each(gp_real *restrict to, int64_t n,
                                          const gp_real *restrict from, int64_t step, int64_t rows,
                                          int64_t row, int how)
{
    for (int64_t j = 0; j < n; j++)
        to[j] = rows > 0 ? from[j * step] : gp_pool_none(how);
    for (int64_t i = 1; i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            to[j] = gp_pool_join(to[j], from[i * row + j * step], how);
}

static GP_NOINLINE void gp_pool_along_each(gp_real *restrict to, int64_t out, int64_t n,
                                           const gp_real *restrict line, int64_t step,
                                           int64_t kernel, int how)
{
    for (int64_t i = 0; i < n; i++) {
        gp_real join = line[i * step];
        for (int64_t k = 1; k < kernel; k++)
            join = gp_pool_join(join, line[i * step + k], how);
        to[i * out] = join;
    }
}

/* The reduced columns of a row of windows, `step` apart. Inlined with a constant `how`; usual sizes
 * are constants too, so that neither is tested within the loops. */
GP_FUNCTION void gp_pool_down(gp_real *restrict to, int64_t n, const gp_real *restrict from,
                              int64_t step, gp_range rows, int64_t row, int64_t seen,
                              gp_real *restrict check, int how)
{
    const int64_t count = rows.to - rows.from;
    from += rows.from * row;
#if defined(__GNUC__)
    if (step == 1 && n >= GP_LANES && count > 0) {
        if (how != GP_POOL_FINITE)
            gp_pool_down_lanes(to, n, from, count, row, seen, check, how);
        else if (GP_WAY(pool_rows_2, count == 2))
            gp_pool_down_lanes(to, n, from, 2, row, seen, check, how);
        else if (GP_WAY(pool_rows_3, count == 3))
            gp_pool_down_lanes(to, n, from, 3, row, seen, check, how);
        else
            gp_pool_down_lanes(to, n, from, count, row, seen, check, how);
        return;
    }
#endif
    (void)seen;
    gp_pool_down_each(to, n, from, step, count, row, how == GP_POOL_SUM ? how : GP_POOL_MAX);
    for (int64_t j = 0; j < n && how == GP_POOL_FINITE; j++)
        check[0] += to[j] * 0;
}

/* Outputs `out` apart, of windows `step` apart. */
GP_FUNCTION void gp_pool_along(gp_real *restrict to, int64_t out, int64_t n,
                               const gp_real *restrict line, int64_t step, int64_t kernel, int how)
{
#if defined(GP_SHUFFLES)
    if (GP_WAY(pool_step_2, out == 1 && step == 2 && kernel > 1 && n >= GP_ZIP_LANES)) {
        if (how != GP_POOL_FINITE)
            gp_pool_along_pairs(to, n, line, kernel, how);
        else if (GP_WAY(pool_columns_2, kernel == 2))
            gp_pool_along_pairs(to, n, line, 2, how);
        else if (GP_WAY(pool_columns_3, kernel == 3))
            gp_pool_along_pairs(to, n, line, 3, how);
        else
            gp_pool_along_pairs(to, n, line, kernel, how);
        return;
    }
#endif
#if defined(__GNUC__)
    if (GP_WAY(pool_step_1, out == 1 && step == 1 && n >= GP_LANES)) {
        if (how != GP_POOL_FINITE)
            gp_pool_along_lanes(to, n, line, kernel, how);
        else if (GP_WAY(pool_columns_2, kernel == 2))
            gp_pool_along_lanes(to, n, line, 2, how);
        else if (GP_WAY(pool_columns_3, kernel == 3))
            gp_pool_along_lanes(to, n, line, 3, how);
        else
            gp_pool_along_lanes(to, n, line, kernel, how);
        return;
    }
#endif
    gp_pool_along_each(to, out, n, line, step, kernel, how == GP_POOL_SUM ? how : GP_POOL_MAX);
}

#endif
