/* State that is only updated if the whole step succeeds: micro-batches work on a copy, which the
 * first one initializes, and which is committed when all of them have succeeded. */
#ifndef GP_STAGE_H
#define GP_STAGE_H

#include "base.h"
#include "scale.h"

/* Operands: the copy so far, the state. */
GP_KERNEL(stage)
{
#ifdef GP_ONE_BATCH
    const int first = 1;
#else
    const int first = GP_PART(c->run) == 0;
#endif
    const gp_real *from = first ? c->in[1].data : c->in[0].data;
    if (from != c->out[0].data)
        memcpy(c->out[0].data, from, (size_t)gp_count(&c->in[0]) * sizeof *from);
    return GP_OK;
}

/* Operands: the state, the copy, whether the step counts (or none: it does). */
GP_KERNEL(commit)
{
    const gp_real *step = c->in[2].data;
    if (step && step[GP_STEP_GOOD] == 0)
        return GP_OK;
    memcpy(c->out[0].data, c->in[1].data, (size_t)gp_count(&c->in[0]) * sizeof(gp_real));
    return GP_OK;
}

#endif
