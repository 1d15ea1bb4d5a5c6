/* Copies a micro-batch's part of an output into the output of the whole batch. */
#ifndef GP_COLLECT_CUH
#define GP_COLLECT_CUH

#include "move.cuh"

GP_KERNEL(collect)
{
    const gp_collect_attr *a = (const gp_collect_attr *)c->attr;
    const gp_tensor *part = &c->in[1], *all = &c->out[0];
    const int64_t at = c->run->micro * part->dim[a->axis] * all->stride[a->axis];
    return gp_move(c, part, (unsigned char *)all->data + at * (int64_t)gp_size(all->dtype),
                   all->stride);
}

#endif
