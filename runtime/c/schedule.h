/* The learning rate of a step as a fraction of the base rate. */
#ifndef GP_SCHEDULE_H
#define GP_SCHEDULE_H

#include "base.h"

enum { GP_CONSTANT, GP_LINEAR, GP_COSINE, GP_STEPS };

/* Linear warmup for `warmup` steps, then decay to `share` at step `steps`, linear or cosine, or by
 * the factor `share` every `steps` steps. Steps count from 0. */
GP_FUNCTION double gp_schedule(int kind, uint64_t warmup, uint64_t steps, double share,
                               uint64_t step)
{
    if (step < warmup)
        return ((double)step + 1) / (double)warmup;
    const double past = (double)(step - warmup);
    if (kind == GP_STEPS)
        return steps > 0 ? pow(share, floor(past / (double)steps)) : 1;
    if (kind != GP_LINEAR && kind != GP_COSINE)
        return 1;
    const double part = step >= steps ? 1 : past / (double)(steps - warmup);
    if (kind == GP_LINEAR)
        return 1 - (1 - share) * part;
    return share + (1 - share) * 0.5 * (1 + cos(3.141592653589793 * part));
}

#endif
