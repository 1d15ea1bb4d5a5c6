/* one_hot: a row of zeros with a one at the index. */
#ifndef GP_ONE_HOT_H
#define GP_ONE_HOT_H

#include "gather.h"

GP_KERNEL(one_hot)
{
    const gp_tensor *index = &c->in[0], *out = &c->out[0];
    int64_t depth = out->dim[out->rank - 1], rows = gp_count(index);
    gp_real *to = out->data;
    if (!gp_indices_fit(index, 0, depth))
        return GP_EINDEX;
    GP_PARALLEL(c->run, rows * depth > 16384)
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < depth; k++)
            to[i * depth + k] = 0;
        to[i * depth + gp_index(index, i)] = 1;
    }
    return GP_OK;
}

#endif
