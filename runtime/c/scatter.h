/* scatter: x with updates set or joined at places that an index picks along an axis. Updates of one
 * element come in their order; threads share out columns, not updates. May run in place of x. Reals
 * of 16 bits may go together with f32; what is added or multiplied makes f32. */
#ifndef GP_SCATTER_H
#define GP_SCATTER_H

#include "gather_elements.h"

GP_WAYS(scatter)
{
    gp_way(ways, "scatter_widens", c->in[0].dtype != c->out[0].dtype);
}

GP_KERNEL(scatter)
{
    const gp_scatter_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *index = &c->in[1], *update = &c->in[2], *out = &c->out[0];
    const gp_picks p = gp_picks_of(index, (int)a->axis);
    const int64_t n = x->dim[p.axis], tiles = (p.width + GP_PICK_LANES - 1) / GP_PICK_LANES;
    if (!gp_picks_fit(index, n))
        return GP_EINDEX;
    if (GP_WAY(scatter_widens, x->dtype != out->dtype))
        gp_convert(x, out);
    else if (x->data != out->data)
        gp_move(c->run, x, out->data, out->stride);
    GP_PARALLEL(c->run, gp_count(index) > 8192)
    for (int64_t task = 0; task < p.rows * tiles; task++) {
        const int64_t first = task % tiles * GP_PICK_LANES, row = task / tiles;
        const int64_t end = first + GP_PICK_LANES < p.width ? first + GP_PICK_LANES : p.width;
        const int64_t from = gp_picks_at(&p, index, row, update->stride);
        const int64_t pick = gp_picks_at(&p, index, row, index->stride);
        const int64_t to = gp_picks_at(&p, index, row, out->stride);
        for (int64_t k = 0; k < p.count; k++)
            for (int64_t i = first; i < end; i++) {
                const int64_t at = gp_index_at(
                    index, pick + k * index->stride[p.axis] + i * gp_picks_step(&p, index), n);
                gp_scatter_one(a->reduction, out, to + at * out->stride[p.axis] + i, update,
                               from + k * update->stride[p.axis] + i);
            }
    }
    return GP_OK;
}

#endif
