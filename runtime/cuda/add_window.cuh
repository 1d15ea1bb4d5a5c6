/* Adds a tensor to a window of another: x, and x[offset + i stride] += dy[i]. Elements of a window
 * do not overlap. */
#ifndef GP_ADD_WINDOW_CUH
#define GP_ADD_WINDOW_CUH

#include "base.cuh"

static __global__ void gp_add_window_elements(gp_line from, const gp_real *dy, gp_line window,
                                              gp_real *to, int64_t count)
{
    for (GP_EACH(i, count))
        to[gp_line_at(&window, i)] += dy[gp_line_at(&from, i)];
}

GP_KERNEL(add_window)
{
    const gp_add_window_attr *a = (const gp_add_window_attr *)c->attr;
    const gp_tensor *dy = &c->in[1];
    gp_real *to = (gp_real *)c->out[0].data;
    if (to != c->in[0].data)
        GP_CUDA_CALL(c, cudaMemcpyAsync(to, c->in[0].data, (size_t)gp_count(&c->in[0]) * sizeof *to,
                                        cudaMemcpyDeviceToDevice, gp_device_of(c)->stream));
    gp_line from, window;
    from.rank = window.rank = 0;
    for (int i = 0; i < dy->rank; i++) {
        gp_line_add(&from, dy->dim[i], dy->stride[i]);
        gp_line_add(&window, dy->dim[i], a->stride[i]);
    }
    const int64_t count = gp_count(dy);
    const unsigned block = gp_block_of(count);
    GP_LAUNCH(c, gp_add_window_elements, gp_blocks(count, block), block, 0, from,
              (const gp_real *)dy->data, window, to + a->offset, count);
    return GP_OK;
}

#endif
