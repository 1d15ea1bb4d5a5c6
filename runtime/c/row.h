/* Sums over a dense row: sixteen lanes side by side within a stretch, stretches pairwise. The
 * order follows from the length alone, and the error grows with its logarithm. */
#ifndef GP_ROW_H
#define GP_ROW_H

#include "math.h"

enum { GP_ROW_LANES = 16, GP_ROW_STRETCH = 512 };

/* A stretch too long is cut in two, at a multiple of the lanes. */
GP_FUNCTION int64_t gp_row_half(int64_t n)
{
    return (n / 2 + GP_ROW_LANES - 1) / GP_ROW_LANES * GP_ROW_LANES;
}

GP_FUNCTION gp_real gp_row_lanes(gp_real *lane)
{
    for (int n = GP_ROW_LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            lane[i] += lane[i + n];
    return lane[0];
}

GP_FUNCTION gp_real gp_row_sum(const gp_real *x, int64_t n)
{
    if (n > GP_ROW_STRETCH) {
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

/* Sum of the squares of x - shift. */
GP_FUNCTION gp_real gp_row_squares(const gp_real *x, gp_real shift, int64_t n)
{
    if (n > GP_ROW_STRETCH) {
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

/* Sum of y * (x - shift). */
GP_FUNCTION gp_real gp_row_along(const gp_real *y, const gp_real *x, gp_real shift, int64_t n)
{
    if (n > GP_ROW_STRETCH) {
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

/* Sum of exp(x - shift). */
GP_FUNCTION gp_real gp_row_exps(const gp_real *x, gp_real shift, int64_t n)
{
    if (n > GP_ROW_STRETCH) {
        int64_t half = gp_row_half(n);
        return gp_row_exps(x, shift, half) + gp_row_exps(x + half, shift, n - half);
    }
    gp_real lane[GP_ROW_LANES] = {0};
    int64_t i = 0;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] += gp_exp(x[i + k] - shift);
    for (int k = 0; i + k < n; k++)
        lane[k] += gp_exp(x[i + k] - shift);
    return gp_row_lanes(lane);
}

GP_FUNCTION gp_real gp_row_max(const gp_real *x, int64_t n)
{
    gp_real lane[GP_ROW_LANES];
    for (int k = 0; k < GP_ROW_LANES; k++)
        lane[k] = x[k < n ? k : 0];
    int64_t i = GP_ROW_LANES;
    for (; i + GP_ROW_LANES <= n; i += GP_ROW_LANES)
        for (int k = 0; k < GP_ROW_LANES; k++)
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (; i < n; i++)
        lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    for (int k = 1; k < GP_ROW_LANES; k++)
        lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];
    return lane[0];
}

/* log of the sum of exp(x), without overflow. */
GP_FUNCTION gp_real gp_row_log_sum_exp(const gp_real *x, int64_t n)
{
    gp_real most = gp_row_max(x, n);
    return most + gp_log(gp_row_exps(x, most, n));
}

#endif
