/* Sums a gradient over micro-batches; the first one initializes the sum. */
#ifndef GP_ACCUMULATE_H
#define GP_ACCUMULATE_H

#include "base.h"

GP_KERNEL(accumulate)
{
    const gp_real *old = c->in[0].data, *g = c->in[1].data;
    gp_real *sum = c->out[0].data;
    const int64_t count = gp_count(&c->in[0]);
    if (c->run->micro == 0) {
        memcpy(sum, g, (size_t)count * sizeof *sum);
        return GP_OK;
    }
    GP_PARALLEL(c->run, count > 1 << 15)
    for (int64_t i = 0; i < count; i++)
        sum[i] = old[i] + g[i];
    return GP_OK;
}

#endif
