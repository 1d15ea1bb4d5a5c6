/* Blocks of codes and the numbers they stand for: see coded.h. */
#ifndef GP_CODED_BLOCK_H
#define GP_CODED_BLOCK_H

#include "coded.h"

enum { GP_CODED_LANES = 16 };

/* At most a block. */
GP_FUNCTION void gp_decode(gp_real *restrict to, const uint8_t *restrict code, gp_real absmax,
                           const gp_codes *codes, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = codes->value[code[i]] * absmax;
}

/* The largest magnitude; NaN where a number is NaN or infinite. */
GP_FUNCTION gp_real gp_absmax(const gp_real *x, int64_t n)
{
    gp_real lane[GP_CODED_LANES] = {0}, rest[GP_CODED_LANES] = {0}, most = 0, odd = 0;
    int64_t i = 0;
    for (; i + GP_CODED_LANES <= n; i += GP_CODED_LANES)
        for (int k = 0; k < GP_CODED_LANES; k++) {
            const gp_real size = x[i + k] < 0 ? -x[i + k] : x[i + k];
            lane[k] = size > lane[k] ? size : lane[k];
            rest[k] += size * 0;
        }
    for (int k = 0; i < n; i++, k++) {
        const gp_real size = x[i] < 0 ? -x[i] : x[i];
        lane[k] = size > lane[k] ? size : lane[k];
        rest[k] += size * 0;
    }
    for (int k = 0; k < GP_CODED_LANES; k++) {
        most = lane[k] > most ? lane[k] : most;
        odd += rest[k];
    }
    return most + odd;
}

GP_FUNCTION gp_real gp_encode(uint8_t *restrict code, const gp_real *restrict from,
                              const gp_codes *codes, int64_t n)
{
    const gp_real absmax = gp_absmax(from, n), by = absmax > 0 ? absmax : 1;
    gp_codes own = *codes; /* a store of bytes could change *codes, and then no loop vectorizes */
    if (codes->is_signed) {
        own.is_signed = 1;
        GP_IVDEP
        for (int64_t i = 0; i < n; i++)
            code[i] = gp_code_of(&own, from[i] / by);
    } else {
        own.is_signed = 0;
        GP_IVDEP
        for (int64_t i = 0; i < n; i++)
            code[i] = gp_code_of(&own, from[i] / by);
    }
    return absmax;
}

#endif
