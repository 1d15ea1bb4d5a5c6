/* scatter_add: x with rows of updates added at indices of axis 0. May run in place of x.
 *
 * A block owns a row of the output, scans all indices, a chunk at a time, and adds the updates of
 * its row in order: the same bits as in C, and no atomics. The result is f32; x and the updates may
 * have 16 bits. */
#ifndef GP_SCATTER_ADD_CUH
#define GP_SCATTER_ADD_CUH

#include "gather.cuh"

static __global__ void gp_scatter_rows(gp_tensor index, gp_reals update, gp_real *to, int64_t rows,
                                       int64_t updates, int64_t width, int32_t *error, int32_t op,
                                       const gp_run *begins)
{
    GP_SHARED(unsigned, hits, [GP_BLOCK / GP_WARP]); /* updates of this row in a chunk */
    for (GP_EACH_BLOCK(row, rows)) {
        for (int64_t k = threadIdx.x; begins && begins->micro == 0 && k < width; k += blockDim.x)
            to[row * width + k] = 0;
        for (int64_t from = 0; from < updates; from += blockDim.x) {
            const int64_t i = from + threadIdx.x;
            const int64_t at =
                i < updates ? gp_index_within(&index, i, -rows, rows, error, op) : -1;
            const unsigned hit = __ballot_sync(GP_ALL_LANES, at == row);
            if (threadIdx.x % GP_WARP == 0)
                hits[threadIdx.x / GP_WARP] = hit;
            __syncthreads();
            for (unsigned warp = 0; warp < blockDim.x / GP_WARP; warp++)
                for (unsigned left = hits[warp]; left; left &= left - 1) {
                    const int64_t which = from + warp * GP_WARP + __ffs((int)left) - 1;
                    for (int64_t k = threadIdx.x; k < width; k += blockDim.x)
                        to[row * width + k] += update[which * width + k];
                }
            __syncthreads(); /* all have read: the next chunk may be scanned */
        }
    }
}

/* To what the output holds, or in the first micro-batch to zeros, where `begins` has the run. */
GP_UNUSED static int gp_add_rows(const gp_call *c, const gp_run *begins)
{
    const gp_tensor *x = &c->in[0], *index = &c->in[1], *out = &c->out[0];
    const int64_t updates = gp_count(index), width = gp_span(x, 1, x->rank), rows = x->dim[0];
    const gp_device *device = gp_device_of(c);
    GP_LAUNCH(c, gp_scatter_rows, gp_blocks(rows, 1),
              gp_block_of(updates > width ? updates : width), 0, *index, gp_reals_of(&c->in[2]),
              (gp_real *)out->data, rows, updates, width, device->error, device->op, begins);
    return GP_OK;
}

GP_KERNEL(scatter_add)
{
    const gp_tensor *x = &c->in[0], *out = &c->out[0];
    const int code = x->data == out->data ? GP_OK : gp_move_reals(c, x, out);
    return code == GP_OK ? gp_add_rows(c, NULL) : code;
}

/* The same over micro-batches, always in place. */
GP_KERNEL(scatter_accumulate)
{
    const gp_scatter_accumulate_attr *a = (const gp_scatter_accumulate_attr *)c->attr;
    return gp_add_rows(c, a->begins ? gp_device_of(c)->run : NULL);
}

GP_TAKES_HALF(scatter_add)
GP_TAKES_HALF(scatter_accumulate)

#endif
