/* scatter_add: x with rows of updates added at indices of axis 0. Updates of one row are added in
 * order; threads divide columns, not updates. May run in place of x. */
#ifndef GP_SCATTER_ADD_H
#define GP_SCATTER_ADD_H

#include "gather.h"
#include "narrow.h"

enum { GP_SCATTER_LANES = GP_BLOCK(64, 4) };

/* Adds columns `first` to first + n - 1 of all updates. */
GP_FUNCTION void gp_add_columns(const gp_call *c, int64_t first, int64_t n)
{
    const gp_tensor *x = &c->in[0], *index = &c->in[1], *update = &c->in[2];
    const int64_t updates = gp_count(index), width = gp_span(x, 1, x->rank);
    gp_real *to = (gp_real *)c->out[0].data + first;
#ifndef GP_NO_HALF
    gp_real wide[GP_SCATTER_LANES];
    (void)wide; /* where no update has 16 bits */
#endif
    for (int64_t i = 0; i < updates; i++) {
        gp_real *row = to + gp_index_at(index, i, x->dim[0]) * width;
        const gp_real *add = (const gp_real *)update->data + i * width + first;
        if (GP_WAY(updates_half, update->dtype != GP_F32)) {
            gp_get_row(wide, gp_element(update, i * width + first), n, update->dtype);
            add = wide;
        }
        for (int64_t k = 0; k < n; k++)
            row[k] += add[k];
    }
}

GP_FUNCTION void gp_add_rows(const gp_call *c)
{
    const gp_tensor *x = &c->in[0];
    const int64_t width = gp_span(x, 1, x->rank);
    const int64_t tiles = (width + GP_SCATTER_LANES - 1) / GP_SCATTER_LANES;
    GP_PARALLEL(c->run, gp_count(&c->in[1]) * width > 16384)
    for (int64_t tile = 0; tile < tiles; tile++) {
        const int64_t first = tile * GP_SCATTER_LANES, left = width - first;
        gp_add_columns(c, first, left < GP_SCATTER_LANES ? left : GP_SCATTER_LANES);
    }
}

GP_WAYS(scatter_add)
{
    gp_way(ways, "scatter_half", c->in[0].dtype != GP_F32);
    gp_way(ways, "updates_half", c->in[2].dtype != GP_F32);
    if (c->in[0].dtype == GP_F32)
        gp_way(ways, "scatter_copies", c->in[0].data != c->out[0].data);
}

GP_WAYS(scatter_accumulate)
{
    gp_way(ways, "updates_half", c->in[2].dtype != GP_F32);
}

GP_KERNEL(scatter_add)
{
    const gp_tensor *x = &c->in[0];
    if (!gp_indices_fit(&c->in[1], -x->dim[0], x->dim[0]))
        return GP_EINDEX;
    if (GP_WAY(scatter_half, x->dtype != GP_F32))
        gp_convert(x, &c->out[0]);
    else if (GP_WAY(scatter_copies, x->data != c->out[0].data))
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
