/* top_indices: see top.h. A thread takes a line. */
#ifndef GP_TOP_INDICES_CUH
#define GP_TOP_INDICES_CUH

#include "../c/top.h"
#include "base.cuh"

static __global__ void gp_top_lines(gp_tensor x, gp_tensor out, int axis, int largest,
                                    int64_t lines)
{
    for (GP_EACH(i, lines)) {
        const gp_top top = gp_top_of(&x, &out, axis, largest, i);
        gp_top_find(&top);
    }
}

GP_KERNEL(top_indices)
{
    const gp_top_indices_attr *a = (const gp_top_indices_attr *)c->attr;
    const int64_t lines = gp_count(&c->in[0]) / c->in[0].dim[a->axis];
    const unsigned block = gp_block_of(lines);
    GP_LAUNCH(c, gp_top_lines, gp_blocks(lines, block), block, 0, c->in[0], c->out[0], (int)a->axis,
              (int)a->largest, lines);
    return GP_OK;
}

GP_TAKES_HALF(top_indices)

#endif
