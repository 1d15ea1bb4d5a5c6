/* The loss scale, for C and CUDA. Its state, and what a step decides, are three numbers each. */
#ifndef GP_SCALE_H
#define GP_SCALE_H

#include "base.h"

enum { GP_SCALE, GP_SCALE_GOOD, GP_SCALE_SKIPPED }; /* the scale, good steps at it, skipped ones */
enum { GP_STEP_FACTOR, GP_STEP_GOOD, GP_STEP_SKIPPED }; /* of gradients; whether they are finite */

#define GP_SCALE_MOST ((gp_real)16777216) /* 2^24 */

/* The norm is of gradients that have the scale; it is infinite or NaN where one of them is. */
GP_FUNCTION void gp_unscaled(const gp_real *state, double norm, double limit, gp_real *to)
{
    const double scale = (double)state[GP_SCALE];
    const int clips = limit > 0 && norm > limit * scale;
    to[GP_STEP_GOOD] = norm - norm == 0;
    to[GP_STEP_FACTOR] = (gp_real)(clips ? limit / norm : 1 / scale);
    to[GP_STEP_SKIPPED] = state[GP_SCALE_SKIPPED];
}

/* Twice the scale after so many good steps, half of it after one that overflowed. */
GP_FUNCTION void gp_scale_next(const gp_real *state, const gp_real *step, int64_t every,
                               gp_real *to)
{
    gp_real scale = state[GP_SCALE], good = state[GP_SCALE_GOOD] + 1;
    gp_real skipped = state[GP_SCALE_SKIPPED];
    if (step[GP_STEP_GOOD] == 0) {
        scale = scale > 1 / GP_SCALE_MOST ? scale / 2 : scale;
        skipped++;
        good = 0;
    } else if (good >= (gp_real)every) {
        scale = scale < GP_SCALE_MOST ? scale * 2 : scale;
        good = 0;
    }
    to[GP_SCALE] = scale;
    to[GP_SCALE_GOOD] = good;
    to[GP_SCALE_SKIPPED] = skipped;
}

#endif
