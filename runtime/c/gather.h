/* gather: slices of an axis, picked by indices. Indices are validated before anything is read. */
#ifndef GP_GATHER_H
#define GP_GATHER_H

#include "move.h"
#include "settings.h"

/* Whether every index is in [0, n). */
GP_FUNCTION int gp_indices_fit(const gp_tensor *index, int64_t n)
{
    int64_t count = gp_count(index), wrong = 0;
    for (int64_t i = 0; i < count; i++)
        wrong += gp_index(index, i) < 0 || gp_index(index, i) >= n;
    return wrong == 0;
}

GP_KERNEL(gather)
{
    const gp_gather_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *index = &c->in[1];
    int axis = (int)a->axis;
    int64_t outer = gp_span(x, 0, axis), n = x->dim[axis], picks = gp_count(index);
    size_t bytes = (size_t)gp_span(x, axis + 1, x->rank) * gp_size(x->dtype);
    if (!gp_indices_fit(index, n))
        return GP_EINDEX;
    GP_PARALLEL(c->run, (size_t)(outer * picks) * bytes > 65536)
    for (int64_t i = 0; i < outer * picks; i++) {
        int64_t from = i / picks * n + gp_index(index, i % picks);
        memcpy((unsigned char *)c->out[0].data + (size_t)i * bytes,
               (const unsigned char *)x->data + (size_t)from * bytes, bytes);
    }
    return GP_OK;
}

#endif
