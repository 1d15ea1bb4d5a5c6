/* Copies a micro-batch's part of an output into the output of the whole batch. */
#ifndef GP_COLLECT_H
#define GP_COLLECT_H

#include "move.h"
#include "settings.h"

GP_KERNEL(collect)
{
    const gp_collect_attr *a = c->attr;
    const gp_tensor *part = &c->in[1], *all = &c->out[0];
    const int64_t at = GP_WINDOW(c->run) * part->dim[a->axis] * all->stride[a->axis];
    gp_move(c->run, part, (unsigned char *)all->data + at * (int64_t)gp_size(all->dtype),
            all->stride);
    return GP_OK;
}

#endif
