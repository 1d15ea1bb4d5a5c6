/* top_indices: see top.h. A thread takes lines. */
#ifndef GP_TOP_INDICES_H
#define GP_TOP_INDICES_H

#include "settings.h"
#include "top.h"

GP_KERNEL(top_indices)
{
    const gp_top_indices_attr *a = c->attr;
    const gp_tensor *x = &c->in[0], *out = &c->out[0];
    const int64_t lines = gp_count(x) / x->dim[a->axis];
    GP_PARALLEL(c->run, gp_count(x) > 4096)
    for (int64_t i = 0; i < lines; i++) {
        const gp_top top = gp_top_of(x, out, (int)a->axis, (int)a->largest, i);
        gp_top_find(&top);
    }
    return GP_OK;
}

#endif
