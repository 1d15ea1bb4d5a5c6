/* scatter_add: x with rows of updates added at indices of axis 0. Updates of one row are added in
 * order; threads divide columns, not updates. May run in place of x. */
#ifndef GP_SCATTER_ADD_H
#define GP_SCATTER_ADD_H

#include "gather.h"

enum { GP_SCATTER_LANES = GP_BLOCK(64, 4) };

GP_FUNCTION void gp_add_rows(const gp_call *c)
{
    const gp_tensor *x = &c->in[0], *index = &c->in[1];
    const gp_real *update = c->in[2].data;
    gp_real *to = c->out[0].data;
    int64_t updates = gp_count(index), width = gp_span(x, 1, x->rank);
    int64_t tiles = (width + GP_SCATTER_LANES - 1) / GP_SCATTER_LANES;
    GP_PARALLEL(c->run, updates * width > 16384)
    for (int64_t tile = 0; tile < tiles; tile++) {
        int64_t first = tile * GP_SCATTER_LANES;
        int64_t end = first + GP_SCATTER_LANES < width ? first + GP_SCATTER_LANES : width;
        for (int64_t i = 0; i < updates; i++) {
            gp_real *row = to + gp_index_at(index, i, x->dim[0]) * width;
            for (int64_t k = first; k < end; k++)
                row[k] += update[i * width + k];
        }
    }
}

GP_FUNCTION int gp_scatter_copies(const gp_call *c)
{
    return c->in[0].data != c->out[0].data;
}

GP_WAYS(scatter_add)
{
    gp_way(ways, "scatter_copies", gp_scatter_copies(c));
}

GP_KERNEL(scatter_add)
{
    const gp_tensor *x = &c->in[0];
    if (!gp_indices_fit(&c->in[1], -x->dim[0], x->dim[0]))
        return GP_EINDEX;
    if (GP_WAY(scatter_copies, gp_scatter_copies(c)))
        gp_move(c->run, x, c->out[0].data, c->out[0].stride);
    gp_add_rows(c);
    return GP_OK;
}

/* The same over micro-batches, always in place. */
GP_KERNEL(scatter_accumulate)
{
    const gp_scatter_accumulate_attr *a = c->attr;
    if (!gp_indices_fit(&c->in[1], -c->in[0].dim[0], c->in[0].dim[0]))
        return GP_EINDEX;
    if (a->begins && c->run->micro == 0)
        memset(c->out[0].data, 0, (size_t)gp_count(&c->out[0]) * sizeof(gp_real));
    gp_add_rows(c);
    return GP_OK;
}

#endif
