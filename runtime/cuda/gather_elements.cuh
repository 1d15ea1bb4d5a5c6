/* gather_elements: elements of x, picked along an axis by an index of their own each. */
#ifndef GP_GATHER_ELEMENTS_CUH
#define GP_GATHER_ELEMENTS_CUH

#include "../c/pick.h"
#include "gather.cuh"

static __global__ void gp_pick_elements(gp_tensor x, gp_tensor index, gp_tensor out, gp_picks p,
                                        int64_t count, int32_t *error, int32_t op)
{
    for (GP_EACH(i, count)) {
        const int64_t column = i % p.width, k = i / p.width % p.count;
        const int64_t row = i / p.width / p.count;
        const int64_t pick = gp_picks_at(&p, &index, row, index.stride) + k * index.stride[p.axis] +
                             column * gp_picks_step(&p, &index);
        const int64_t n = x.dim[p.axis], at = gp_index_within(&index, pick, -n, n, error, op);
        const int64_t to = gp_picks_at(&p, &index, row, out.stride) + k * out.stride[p.axis];
        const int64_t from = gp_picks_at(&p, &index, row, x.stride) + at * x.stride[p.axis];
        if (at >= 0)
            gp_copy_one(gp_size(x.dtype), out.data, to + column, x.data, from + column);
    }
}

GP_KERNEL(gather_elements)
{
    const gp_tensor *index = &c->in[1];
    const gp_picks p = gp_picks_of(index, (int)((const gp_gather_elements_attr *)c->attr)->axis);
    const int64_t count = gp_count(index);
    const unsigned block = gp_block_of(count);
    const gp_device *device = gp_device_of(c);
    GP_LAUNCH(c, gp_pick_elements, gp_blocks(count, block), block, 0, c->in[0], *index, c->out[0],
              p, count, device->error, device->op);
    return GP_OK;
}

GP_TAKES_HALF(gather_elements)

#endif
