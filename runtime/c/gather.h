/* gather: slices of an axis, picked by indices. Indices are validated before anything is read. */
#ifndef GP_GATHER_H
#define GP_GATHER_H

#include "move.h"
#include "settings.h"

/* Whether every index is from `low` to less than n. */
GP_FUNCTION int gp_indices_fit(const gp_tensor *index, int64_t low, int64_t n)
{
    int64_t count = gp_count(index), wrong = 0;
    for (int64_t i = 0; i < count; i++)
        wrong += gp_index(index, i) < low || gp_index(index, i) >= n;
    return wrong == 0;
}

/* An index of one out of n, counted from the start; a negative one counts from the end. */
GP_FUNCTION int64_t gp_index_at(const gp_tensor *index, int64_t i, int64_t n)
{
    const int64_t at = gp_index(index, i);
    return at < 0 ? at + n : at;
}

GP_KERNEL(gather)
{
    const gp_gather_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *index = &c->in[1];
    int axis = (int)a->axis;
    int64_t outer = gp_span(x, 0, axis), n = x->dim[axis], picks = gp_count(index);
    size_t bytes = (size_t)gp_span(x, axis + 1, x->rank) * gp_size(x->dtype);
    if (!gp_indices_fit(index, -n, n))
        return GP_EINDEX;
    GP_PARALLEL(c->run, (size_t)(outer * picks) * bytes > 65536)
    for (int64_t i = 0; i < outer * picks; i++) {
        int64_t from = i / picks * n + gp_index_at(index, i % picks, n);
        memcpy((unsigned char *)c->out[0].data + (size_t)i * bytes,
               (const unsigned char *)x->data + (size_t)from * bytes, bytes);
    }
    return GP_OK;
}

#endif
