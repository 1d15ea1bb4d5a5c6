/* one_hot: a row of zeros with a one at the index. */
#ifndef GP_ONE_HOT_CUH
#define GP_ONE_HOT_CUH

#include "gather.cuh"

static __global__ void gp_one_hot_elements(gp_tensor index, gp_real *to, int64_t rows,
                                           int64_t depth, int32_t *error, int32_t op)
{
    for (GP_EACH(i, rows * depth))
        to[i] = gp_index_within(&index, i / depth, 0, depth, error, op) == i % depth;
}

GP_KERNEL(one_hot)
{
    const gp_tensor *index = &c->in[0], *out = &c->out[0];
    const int64_t depth = out->dim[out->rank - 1], rows = gp_count(index);
    const unsigned block = gp_block_of(rows * depth);
    const gp_device *device = gp_device_of(c);
    GP_LAUNCH(c, gp_one_hot_elements, gp_blocks(rows * depth, block), block, 0, *index,
              (gp_real *)out->data, rows, depth, device->error, device->op);
    return GP_OK;
}

#endif
