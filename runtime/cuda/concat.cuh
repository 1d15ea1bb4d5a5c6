/* concat: operands one after the other along an axis. An operand that its producer already wrote
 * into its window of the output is not copied. */
#ifndef GP_CONCAT_CUH
#define GP_CONCAT_CUH

#include "move.cuh"

GP_KERNEL(concat)
{
    const gp_concat_attr *a = (const gp_concat_attr *)c->attr;
    const gp_tensor *out = &c->out[0];
    unsigned char *to = (unsigned char *)out->data;
    for (int i = 0; i < c->ins; i++) {
        const gp_tensor *x = &c->in[i];
        const int code = x->data == to ? GP_OK : gp_move(c, x, to, out->stride);
        if (code != GP_OK)
            return code;
        to += x->dim[a->axis] * out->stride[a->axis] * (int64_t)gp_size(out->dtype);
    }
    return GP_OK;
}

GP_TAKES_HALF(concat)

#endif
