/* gather_elements: elements of x, picked along an axis by an index of their own each. */
#ifndef GP_GATHER_ELEMENTS_H
#define GP_GATHER_ELEMENTS_H

#include "gather.h"
#include "pick.h"

enum { GP_PICK_LANES = GP_BLOCK(64, 4) }; /* columns that a thread takes at a time */

/* Whether every index of a tensor of any strides is from -n to less than n. What is broadcast is
 * looked at once. */
GP_FUNCTION int gp_picks_fit(const gp_tensor *index, int64_t n)
{
    gp_line line;
    int64_t wrong = 0;
    line.rank = 0;
    for (int d = 0; d < index->rank; d++)
        if (index->stride[d] != 0)
            gp_line_add(&line, index->dim[d], index->stride[d]);
    for (int64_t i = 0, count = gp_line_count(&line); i < count; i++) {
        const int64_t at = gp_index(index, gp_line_at(&line, i));
        wrong += at < -n || at >= n;
    }
    return wrong == 0;
}

GP_KERNEL(gather_elements)
{
    const gp_tensor *x = &c->in[0], *index = &c->in[1], *out = &c->out[0];
    const gp_picks p = gp_picks_of(index, (int)((const gp_gather_elements_attr *)c->attr)->axis);
    const int64_t n = x->dim[p.axis], tiles = (p.width + GP_PICK_LANES - 1) / GP_PICK_LANES;
    const size_t size = gp_size(x->dtype);
    if (!gp_picks_fit(index, n))
        return GP_EINDEX;
    GP_PARALLEL(c->run, gp_count(index) > 8192)
    for (int64_t task = 0; task < p.rows * tiles; task++) {
        const int64_t first = task % tiles * GP_PICK_LANES, row = task / tiles;
        const int64_t end = first + GP_PICK_LANES < p.width ? first + GP_PICK_LANES : p.width;
        const int64_t from = gp_picks_at(&p, index, row, x->stride);
        const int64_t pick = gp_picks_at(&p, index, row, index->stride);
        const int64_t to = gp_picks_at(&p, index, row, out->stride);
        for (int64_t k = 0; k < p.count; k++)
            for (int64_t i = first; i < end; i++) {
                const int64_t at = gp_index_at(
                    index, pick + k * index->stride[p.axis] + i * gp_picks_step(&p, index), n);
                gp_copy_one(size, out->data, to + k * out->stride[p.axis] + i, x->data,
                            from + at * x->stride[p.axis] + i);
            }
    }
    return GP_OK;
}

#endif
