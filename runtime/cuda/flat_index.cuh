/* flat_index: see flat.h. */
#ifndef GP_FLAT_INDEX_CUH
#define GP_FLAT_INDEX_CUH

#include "../c/flat.h"
#include "base.cuh"

static __global__ void gp_flat_rows(gp_tensor index, gp_flat_index_attr a, int64_t *to,
                                    int64_t rows, int32_t *error, int32_t op)
{
    for (GP_EACH(i, rows)) {
        const int64_t flat = gp_flat(&index, &a, i);
        to[i] = flat < 0 ? 0 : flat;
        if (flat < 0)
            gp_bad_index(error, op);
    }
}

GP_KERNEL(flat_index)
{
    const int64_t rows = gp_count(&c->out[0]);
    const unsigned block = gp_block_of(rows);
    const gp_device *device = gp_device_of(c);
    GP_LAUNCH(c, gp_flat_rows, gp_blocks(rows, block), block, 0, c->in[0],
              *(const gp_flat_index_attr *)c->attr, (int64_t *)c->out[0].data, rows, device->error,
              device->op);
    return GP_OK;
}

#endif
