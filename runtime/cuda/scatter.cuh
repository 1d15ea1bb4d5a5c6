/* scatter: x with updates set or joined at places that an index picks along an axis. A thread takes
 * a column and its updates in their order: the same bits as in C. May run in place of x. Reals of
 * 16 bits may go together with f32; what is added or multiplied makes f32. */
#ifndef GP_SCATTER_CUH
#define GP_SCATTER_CUH

#include "../c/pick.h"
#include "gather.cuh"

static __global__ void gp_scatter_columns(gp_tensor index, gp_tensor update, gp_tensor out,
                                          gp_picks p, int64_t reduction, int32_t *error, int32_t op)
{
    for (GP_EACH(i, p.rows * p.width)) {
        const int64_t row = i / p.width, column = i % p.width, n = out.dim[p.axis];
        const int64_t pick =
            gp_picks_at(&p, &index, row, index.stride) + column * gp_picks_step(&p, &index);
        const int64_t from = gp_picks_at(&p, &index, row, update.stride) + column;
        const int64_t to = gp_picks_at(&p, &index, row, out.stride) + column;
        for (int64_t k = 0; k < p.count; k++) {
            const int64_t at =
                gp_index_within(&index, pick + k * index.stride[p.axis], -n, n, error, op);
            if (at >= 0)
                gp_scatter_one(reduction, &out, to + at * out.stride[p.axis], &update,
                               from + k * update.stride[p.axis]);
        }
    }
}

GP_KERNEL(scatter)
{
    const gp_scatter_attr *a = (const gp_scatter_attr *)c->attr;
    const gp_tensor *x = &c->in[0], *index = &c->in[1], *out = &c->out[0];
    const gp_picks p = gp_picks_of(index, (int)a->axis);
    const unsigned block = gp_block_of(p.rows * p.width);
    const gp_device *device = gp_device_of(c);
    if (x->data != out->data) {
        const int code = gp_move_reals(c, x, out);
        if (code != GP_OK)
            return code;
    }
    GP_LAUNCH(c, gp_scatter_columns, gp_blocks(p.rows * p.width, block), block, 0, *index, c->in[2],
              *out, p, a->reduction, device->error, device->op);
    return GP_OK;
}

GP_TAKES_HALF(scatter)

#endif
