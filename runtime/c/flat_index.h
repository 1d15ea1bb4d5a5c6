/* flat_index: see flat.h. */
#ifndef GP_FLAT_INDEX_H
#define GP_FLAT_INDEX_H

#include "flat.h"

GP_KERNEL(flat_index)
{
    const gp_tensor *index = &c->in[0];
    const int64_t rows = gp_count(&c->out[0]);
    int64_t *to = c->out[0].data, wrong = 0;
    for (int64_t i = 0; i < rows; i++) {
        to[i] = gp_flat(index, c->attr, i);
        wrong += to[i] < 0;
    }
    return wrong ? GP_EINDEX : GP_OK;
}

#endif
