/* Sums over a contiguous row: lanes within a chunk, chunks pairwise. The order follows from the
 * length alone, and the error grows with its logarithm. */
#ifndef GP_ROW_H
#define GP_ROW_H

#include "math.h"

enum {
    GP_ROW_LANES = GP_BLOCK(32, 32),
    GP_ROW_CHUNK = GP_BLOCK(1024, 64),
    GP_ROW_BLOCK = GP_BLOCK(16, 3) /* rows of a thread at a time, where it only streams them */
};

/* A row that is too long is halved, at a multiple of the lanes. */
GP_FUNCTION int64_t gp_row_half(int64_t n)
{
    return (n / 2 + GP_ROW_LANES - 1) / GP_ROW_LANES * GP_ROW_LANES;
}

/* Adds the second half to the first, until one lane is left. Each loop has a constant length, so
 * the lanes stay in registers. */
GP_FUNCTION gp_real gp_row_lanes(gp_real *lane)
{
    for (int i = 0; i < 16; i++)
        lane[i] += lane[i + 16];
    for (int i = 0; i < 8; i++)
        lane[i] += lane[i + 8];
    for (int i = 0; i < 4; i++)
        lane[i] += lane[i + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

GP_FUNCTION gp_real gp_row_sum(const gp_real *x, int64_t n)
{
    if (n > GP_ROW_CHUNK) {
        int64_t half = gp_row_half(n);
        return gp_row_sum(x, half) + gp_row_sum(x + half, n - half);
    }
    gp_real lane[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += x[i + k];
    for (int k = 0; i + k < n; k++)
        lane[k] += x[i + k];
    return gp_row_lanes(lane);
}

/* Sum of x - shift. */
GP_FUNCTION gp_real gp_row_offsets(const gp_real *x, gp_real shift, int64_t n)
{
    if (n > GP_ROW_CHUNK) {
        int64_t half = gp_row_half(n);
        return gp_row_offsets(x, shift, half) + gp_row_offsets(x + half, shift, n - half);
    }
    gp_real lane[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += x[i + k] - shift;
    for (int k = 0; i + k < n; k++)
        lane[k] += x[i + k] - shift;
    return gp_row_lanes(lane);
}

/* Sum of the squares of x - shift. */
GP_FUNCTION gp_real gp_row_squares(const gp_real *x, gp_real shift, int64_t n)
{
    if (n > GP_ROW_CHUNK) {
        int64_t half = gp_row_half(n);
        return gp_row_squares(x, shift, half) + gp_row_squares(x + half, shift, n - half);
    }
    gp_real lane[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += (x[i + k] - shift) * (x[i + k] - shift);
    for (int k = 0; i + k < n; k++)
        lane[k] += (x[i + k] - shift) * (x[i + k] - shift);
    return gp_row_lanes(lane);
}

/* The same in double, where a square may overflow a real. */
GP_FUNCTION double gp_row_large_squares(const gp_real *x, gp_real shift, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)(x[i] - shift) * (double)(x[i] - shift);
    return sum;
}

/* Sum of y * (x - shift). */
GP_FUNCTION gp_real gp_row_along(const gp_real *y, const gp_real *x, gp_real shift, int64_t n)
{
    if (n > GP_ROW_CHUNK) {
        int64_t half = gp_row_half(n);
        return gp_row_along(y, x, shift, half) + gp_row_along(y + half, x + half, shift, n - half);
    }
    gp_real lane[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += y[i + k] * (x[i + k] - shift);
    for (int k = 0; i + k < n; k++)
        lane[k] += y[i + k] * (x[i + k] - shift);
    return gp_row_lanes(lane);
}

/* Adds exp(x - shift) of a piece of a row to the lanes, and stores them to `to` unless that is
 * NULL. All pieces but the last are a multiple of the lanes. */
GP_FUNCTION void gp_row_add_exps(gp_real *restrict lane, const gp_real *x, gp_real *to,
                                 gp_real shift, int64_t n)
{
    const gp_real low = gp_exp_low(shift);
    gp_real aside[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES) {
        gp_real *e = to ? to + i : aside;
        GP_IVDEP
        for (int k = 0; k < GP_ROW_LANES; k++)
            e[k] = gp_exp_below(x[i + k] - shift, low);
        GP_IVDEP
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += e[k];
    }
    for (int k = 0; i + k < n; k++) {
        const gp_real last = gp_exp_below(x[i + k] - shift, low);
        lane[k] += last;
        if (to)
            to[i + k] = last;
    }
}

/* The sum of exp(x - shift), stored to `to` unless that is NULL; it may be x. No x is larger than
 * shift. */
static GP_NOINLINE gp_real gp_row_exps(const gp_real *x, gp_real *to, gp_real shift, int64_t n)
{
    if (n > GP_ROW_CHUNK) {
        int64_t half = gp_row_half(n);
        return gp_row_exps(x, to, shift, half) +
               gp_row_exps(x + half, to ? to + half : NULL, shift, n - half);
    }
    gp_real lane[GP_ROW_LANES] = {0};
    gp_row_add_exps(lane, x, to, shift, n);
    return gp_row_lanes(lane);
}

/* Maximum of the lanes and a piece of a row. */
GP_FUNCTION void gp_row_join_max(gp_real *restrict lane, const gp_real *restrict x, int64_t n)
{
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (int k = 0; i + k < n; k++)
        lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
}

GP_FUNCTION gp_real gp_row_lanes_max(gp_real *lane)
{
    for (int k = 0; k < 16; k++)
        lane[k] = lane[k + 16] > lane[k] ? lane[k + 16] : lane[k];
    for (int k = 0; k < 8; k++)
        lane[k] = lane[k + 8] > lane[k] ? lane[k + 8] : lane[k];
    for (int k = 1; k < 8; k++)
        lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];
    return lane[0];
}

/* NaNs are ignored, unless the first is one. */
GP_FUNCTION gp_real gp_row_max(const gp_real *x, int64_t n)
{
    gp_real lane[GP_ROW_LANES];
    for (int k = 0; k < GP_ROW_LANES; k++)
        lane[k] = x[0];
    gp_row_join_max(lane, x, n);
    return gp_row_lanes_max(lane);
}

#endif
