/* Epilogues: the elementwise loop fused into a product runs over each part of the output as soon as
 * it is final, in runs of contiguous elements. */
#ifndef GP_EPILOGUE_H
#define GP_EPILOGUE_H

#include "base.h"

/* n elements, `step` apart, with indices from `first`. */
GP_FUNCTION void gp_epilogue_run(const gp_call *c, gp_real *at, int64_t step, int64_t first,
                                 int64_t n)
{
    if (GP_WAY(epilogue_apart, step != 1))
        for (int64_t i = 0; i < n; i++)
            c->epilogue(c->epilogue_args, at + i * step, first + i, 1);
    else
        c->epilogue(c->epilogue_args, at, first, n);
}

/* One channel of one image of an output [N, C, H, W]. */
GP_FUNCTION void gp_epilogue_plane(const gp_call *c, int64_t image, int64_t channel)
{
    const gp_tensor *y = &c->out[0];
    if (!c->epilogue)
        return;
    const int even = y->dim[2] == 1 || y->stride[2] == y->dim[3] * y->stride[3];
    const int64_t size = y->dim[2] * y->dim[3], run = even ? size : y->dim[3];
    gp_real *at = (gp_real *)y->data + image * y->stride[0] + channel * y->stride[1];
    for (int64_t i = 0; i < size; i += run, at += y->stride[2])
        gp_epilogue_run(c, at, y->stride[3], (image * y->dim[1] + channel) * size + i, run);
}

#endif
