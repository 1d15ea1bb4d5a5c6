/* The loss scale of f16: whether a step counts, and the scale of the next.
 *
 * A gradient that overflowed is infinite or NaN, and so then is the norm of all. A step that does
 * not count leaves all that is saved as it is: optimizers (update.h) and staged statistics
 * (stage.h) read what unscale has made, for 0 times infinity is no 0. */
#ifndef GP_UNSCALE_H
#define GP_UNSCALE_H

#include "clip_factor.h"
#include "scale.h"

GP_WORKSPACE(unscale)
{
    return gp_clip_factor_workspace(c);
}

/* Operands: the state of the loss scale, the gradients. */
GP_KERNEL(unscale)
{
    const gp_unscale_attr *a = c->attr;
    const double norm = gp_norm_of(c, 1);
    gp_unscaled(c->in[0].data, norm, a->limit, c->out[0].data);
    return GP_OK;
}

/* Operands: the state, what unscale has made. */
GP_KERNEL(loss_scale)
{
    const gp_loss_scale_attr *a = c->attr;
    gp_scale_next(c->in[0].data, c->in[1].data, a->every, c->out[0].data);
    return GP_OK;
}

#endif
