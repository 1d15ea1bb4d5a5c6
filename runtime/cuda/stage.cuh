/* State that is only updated if the whole step succeeds: micro-batches work on a copy, which the
 * first one initializes, and which is committed when all of them have succeeded. */
#ifndef GP_STAGE_CUH
#define GP_STAGE_CUH

#include "base.cuh"

#include "../c/scale.h"

static __global__ void gp_stage_elements(const gp_real *staged, const gp_real *state, gp_real *to,
                                         int64_t count, const gp_run *run)
{
    const bool first = run->micro == 0;
    for (GP_EACH(i, count))
        to[i] = first ? state[i] : staged[i];
}

/* Operands: the copy so far, the state. */
GP_KERNEL(stage)
{
    const int64_t count = gp_count(&c->in[0]);
    const unsigned block = gp_block_of(count);
    GP_LAUNCH(c, gp_stage_elements, gp_blocks(count, block), block, 0,
              (const gp_real *)c->in[0].data, (const gp_real *)c->in[1].data,
              (gp_real *)c->out[0].data, count, gp_device_of(c)->run);
    return GP_OK;
}

static __global__ void gp_commit_elements(const gp_real *staged, const gp_real *step, gp_real *to,
                                          int64_t count)
{
    if (step && step[GP_STEP_GOOD] == 0)
        return;
    for (GP_EACH(i, count))
        to[i] = staged[i];
}

/* Operands: the state, the copy, whether the step counts (or none: it does). */
GP_KERNEL(commit)
{
    const int64_t count = gp_count(&c->in[0]);
    const unsigned block = gp_block_of(count);
    GP_LAUNCH(c, gp_commit_elements, gp_blocks(count, block), block, 0,
              (const gp_real *)c->in[1].data, (const gp_real *)c->in[2].data,
              (gp_real *)c->out[0].data, count);
    return GP_OK;
}

#endif
