/* The sum of a gradient over micro-batches: the first one starts it. */
#ifndef GP_ACCUMULATE_CUH
#define GP_ACCUMULATE_CUH

#include "base.cuh"

static __global__ void gp_accumulate_elements(const gp_real *old, const gp_real *g, gp_real *sum,
                                              int64_t count, const gp_run *run)
{
    const bool first = run->micro == 0;
    for (GP_EACH(i, count))
        sum[i] = first ? g[i] : old[i] + g[i];
}

GP_KERNEL(accumulate)
{
    const int64_t count = gp_count(&c->in[0]);
    const unsigned block = gp_block_of(count);
    GP_LAUNCH(c, gp_accumulate_elements, gp_blocks(count, block), block, 0,
              (const gp_real *)c->in[0].data, (const gp_real *)c->in[1].data,
              (gp_real *)c->out[0].data, count, gp_device_of(c)->run);
    return GP_OK;
}

#endif
