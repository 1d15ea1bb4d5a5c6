/* softmax and log_softmax along one axis, with the maximum subtracted first. May run in place.
 *
 * One block per row where the axis is the last one, else one thread per column. */
#ifndef GP_SOFTMAX_CUH
#define GP_SOFTMAX_CUH

#include "base.cuh"

#include "../c/math.h"

static __global__ void gp_softmax_rows(gp_reals x, gp_reals to, int64_t rows, int64_t n, int is_log)
{
    for (GP_EACH_BLOCK(row, rows)) {
        const gp_reals from = gp_reals_from(x, row * n), out = gp_reals_from(to, row * n);
        gp_real most = -(gp_real)INFINITY;
        double exps = 0;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            const gp_real one = from[i];
            most = one > most ? one : most;
        }
        most = gp_block_join(most, gp_larger());
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            exps += (double)gp_exp(from[i] - most);
        const gp_real sum = (gp_real)gp_block_sum(exps);
        const gp_real shift = is_log ? gp_log(sum) : 0, scale = 1 / sum;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            out.put(i, is_log ? from[i] - most - shift : gp_exp(from[i] - most) * scale);
    }
}

static __global__ void gp_softmax_columns(gp_reals x, gp_reals to, int64_t outer, int64_t n,
                                          int64_t inner, int is_log)
{
    for (GP_EACH(column, outer * inner)) {
        const int64_t at = column / inner * n * inner + column % inner;
        gp_real most = x[at];
        double sum = 0;
        for (int64_t k = 1; k < n; k++) {
            const gp_real one = x[at + k * inner];
            most = one > most ? one : most;
        }
        for (int64_t k = 0; k < n; k++)
            sum += (double)gp_exp(x[at + k * inner] - most);
        const gp_real scale = is_log ? (gp_real)log(sum) : (gp_real)(1 / sum);
        for (int64_t k = 0; k < n; k++) {
            const gp_real less = x[at + k * inner] - most;
            to.put(at + k * inner, is_log ? less - scale : gp_exp(less) * scale);
        }
    }
}

GP_UNUSED static inline int gp_softmax_any(const gp_call *c, int axis, int is_log)
{
    const gp_tensor *t = &c->in[0];
    const gp_reals x = gp_reals_of(t), to = gp_reals_of(&c->out[0]);
    const int64_t outer = gp_span(t, 0, axis), n = t->dim[axis];
    const int64_t inner = gp_span(t, axis + 1, t->rank);
    if (inner == 1)
        GP_LAUNCH(c, gp_softmax_rows, gp_blocks(outer, 1), gp_block_of(n), 0, x, to, outer, n,
                  is_log);
    else
        GP_LAUNCH(c, gp_softmax_columns, gp_blocks(outer * inner, GP_BLOCK), GP_BLOCK, 0, x, to,
                  outer, n, inner, is_log);
    return GP_OK;
}

GP_KERNEL(softmax)
{
    return gp_softmax_any(c, (int)((const gp_softmax_attr *)c->attr)->axis, 0);
}

GP_KERNEL(log_softmax)
{
    return gp_softmax_any(c, (int)((const gp_log_softmax_attr *)c->attr)->axis, 1);
}

GP_TAKES_HALF(softmax)
GP_TAKES_HALF(log_softmax)

#endif
