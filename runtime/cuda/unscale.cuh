/* The loss scale of f16: whether a step counts, and the scale of the next. See runtime/c/unscale.h.
 */
#ifndef GP_UNSCALE_CUH
#define GP_UNSCALE_CUH

#include "clip_factor.cuh"

#include "../c/scale.h"

static __global__ void gp_unscale_finish(const double *part, int64_t parts, const gp_real *state,
                                         double limit, gp_real *to)
{
    const double norm = gp_norm_of(part, parts);
    if (threadIdx.x == 0)
        gp_unscaled(state, norm, limit, to);
}

/* Operands: the state of the loss scale, the gradients. */
GP_KERNEL(unscale)
{
    const gp_unscale_attr *a = (const gp_unscale_attr *)c->attr;
    int64_t sums = 0;
    const int code = gp_clip_sums(c, 1, &sums);
    if (code != GP_OK)
        return code;
    GP_LAUNCH(c, gp_unscale_finish, 1, gp_block_of(sums), 0, (const double *)c->work, sums,
              (const gp_real *)c->in[0].data, a->limit, (gp_real *)c->out[0].data);
    return GP_OK;
}

static __global__ void gp_scale_move(const gp_real *state, const gp_real *step, int64_t every,
                                     gp_real *to)
{
    gp_scale_next(state, step, every, to);
}

/* Operands: the state, what unscale has made. */
GP_KERNEL(loss_scale)
{
    const gp_loss_scale_attr *a = (const gp_loss_scale_attr *)c->attr;
    GP_LAUNCH(c, gp_scale_move, 1, 1, 0, (const gp_real *)c->in[0].data,
              (const gp_real *)c->in[1].data, a->every, (gp_real *)c->out[0].data);
    return GP_OK;
}

#endif
