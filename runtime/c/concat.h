/* concat: operands one after the other along an axis. An operand that its producer already wrote
 * into its window of the output is not copied. */
#ifndef GP_CONCAT_H
#define GP_CONCAT_H

#include "move.h"
#include "settings.h"

GP_KERNEL(concat)
{
    const gp_concat_attr *a = c->attr;
    const gp_tensor *out = &c->out[0];
    unsigned char *to = out->data;
    for (int i = 0; i < c->ins; i++) {
        const gp_tensor *x = &c->in[i];
        if (x->data != to)
            gp_move(c->run, x, to, out->stride);
        to += x->dim[a->axis] * out->stride[a->axis] * (int64_t)gp_size(out->dtype);
    }
    return GP_OK;
}

#endif
