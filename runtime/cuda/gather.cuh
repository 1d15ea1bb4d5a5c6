/* gather: slices of an axis, picked by indices. A slice whose index is out of range is not
 * written. */
#ifndef GP_GATHER_CUH
#define GP_GATHER_CUH

#include "move.cuh"

/* An index in [low, n), where a negative one counts from the end; -1 for one out of range, which
 * is reported. */
GP_DEVICE int64_t gp_index_within(const gp_tensor *index, int64_t i, int64_t low, int64_t n,
                                  int32_t *error, int32_t op)
{
    const int64_t at = gp_index(index, i);
    if (at >= low && at < n)
        return at < 0 ? at + n : at;
    gp_bad_index(error, op);
    return -1;
}

static __global__ void gp_gather_slices(gp_tensor index, const void *x, void *to, int64_t outer,
                                        int64_t n, int64_t picks, int64_t width, int64_t size,
                                        int32_t *error, int32_t op)
{
    for (GP_EACH(i, outer * picks * width)) {
        const int64_t row = i / width, at = gp_index_within(&index, row % picks, -n, n, error, op);
        if (at >= 0)
            gp_copy_element(size, to, i, x, (row / picks * n + at) * width + i % width);
    }
}

GP_KERNEL(gather)
{
    const gp_gather_attr *a = (const gp_gather_attr *)c->attr;
    const gp_tensor *x = &c->in[0], *index = &c->in[1];
    const int axis = (int)a->axis;
    const int64_t outer = gp_span(x, 0, axis), picks = gp_count(index);
    const int64_t width = gp_span(x, axis + 1, x->rank), count = outer * picks * width;
    const unsigned block = gp_block_of(count);
    const gp_device *device = gp_device_of(c);
    GP_LAUNCH(c, gp_gather_slices, gp_blocks(count, block), block, 0, *index, (const void *)x->data,
              (void *)c->out[0].data, outer, x->dim[axis], picks, width, (int64_t)gp_size(x->dtype),
              device->error, device->op);
    return GP_OK;
}

GP_TAKES_HALF(gather)

#endif
