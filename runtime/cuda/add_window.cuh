/* Adds a tensor to a window of another: x, and x[offset + i stride] += dy[i]. Elements of a window
 * do not overlap. */
#ifndef GP_ADD_WINDOW_CUH
#define GP_ADD_WINDOW_CUH

#include "base.cuh"

static __global__ void gp_add_window_elements(gp_line from, gp_reals dy, gp_line window,
                                              gp_reals to, int64_t count)
{
    for (GP_EACH(i, count)) {
        const int64_t at = gp_line_at(&window, i);
        to.put(at, to[at] + dy[gp_line_at(&from, i)]);
    }
}

GP_KERNEL(add_window)
{
    const gp_add_window_attr *a = (const gp_add_window_attr *)c->attr;
    const gp_tensor *x = &c->in[0], *dy = &c->in[1], *to = &c->out[0];
    if (to->data != x->data)
        GP_CUDA_CALL(c, cudaMemcpyAsync(to->data, x->data, (size_t)gp_count(x) * gp_size(x->dtype),
                                        cudaMemcpyDeviceToDevice, gp_device_of(c)->stream));
    gp_line from, window;
    from.rank = window.rank = 0;
    for (int i = 0; i < dy->rank; i++) {
        gp_line_add(&from, dy->dim[i], dy->stride[i]);
        gp_line_add(&window, dy->dim[i], a->stride[i]);
    }
    const int64_t count = gp_count(dy);
    const unsigned block = gp_block_of(count);
    GP_LAUNCH(c, gp_add_window_elements, gp_blocks(count, block), block, 0, from, gp_reals_of(dy),
              window, gp_reals_from(gp_reals_of(to), a->offset), count);
    return GP_OK;
}

GP_TAKES_HALF(add_window)

#endif
