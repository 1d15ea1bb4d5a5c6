/* cumsum: the running sum along an axis. Reals are summed in double.
 *
 * One thread per column where the axis is not the last one; else one block per row, a chunk at a
 * time: sums within a warp, then of the warps before, then of the chunks before. */
#ifndef GP_CUMSUM_CUH
#define GP_CUMSUM_CUH

#include "base.cuh"

GP_DEVICE void gp_cumsum_load(const gp_tensor *t, int64_t at, double *x)
{
    *x = (double)gp_get_real(t->data, at, t->dtype);
}

/* Integers wrap around. */
GP_DEVICE void gp_cumsum_load(const gp_tensor *t, int64_t at, uint64_t *x)
{
    *x = (uint64_t)gp_load_int(t, at);
}

GP_DEVICE void gp_cumsum_store(const gp_tensor *t, int64_t at, double x)
{
    gp_set_real(t->data, at, t->dtype, (gp_real)x);
}

GP_DEVICE void gp_cumsum_store(const gp_tensor *t, int64_t at, uint64_t x)
{
    gp_store_int(t, at, (int64_t)x);
}

template <class T>
static __global__ void gp_cumsum_columns(gp_tensor x, gp_tensor to, int64_t outer, int64_t n,
                                         int64_t inner, gp_cumsum_attr a)
{
    for (GP_EACH(column, outer * inner)) {
        const int64_t first = column / inner * n * inner + column % inner;
        T sum = 0;
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = first + (a.reverse ? n - 1 - k : k) * inner;
            const T before = sum;
            T one;
            gp_cumsum_load(&x, at, &one);
            sum += one;
            gp_cumsum_store(&to, at, a.exclusive ? before : sum);
        }
    }
}

/* The sum of what this thread (save where that is excluded) and those before it hold; `*all` of
 * what the block holds. */
template <class T> __device__ inline T gp_block_scan(T x, int64_t exclusive, T *all)
{
    GP_SHARED(T, total, [GP_WARP]);
    const unsigned lane = threadIdx.x % GP_WARP, warp = threadIdx.x / GP_WARP;
    for (unsigned step = 1; step < GP_WARP; step *= 2) {
        const T before = __shfl_up_sync(GP_ALL_LANES, x, step);
        if (lane >= step)
            x += before;
    }
    const T others = __shfl_up_sync(GP_ALL_LANES, x, 1);
    if (lane == GP_WARP - 1)
        total[warp] = x;
    if (exclusive)
        x = lane ? others : 0;
    __syncthreads();
    T before = 0, sum = 0;
    for (unsigned i = 0; i < blockDim.x / GP_WARP; i++) {
        before = i == warp ? sum : before;
        sum += total[i];
    }
    __syncthreads(); /* all have read the totals: the next call may write them */
    *all = sum;
    return before + x;
}

template <class T>
static __global__ void gp_cumsum_rows(gp_tensor x, gp_tensor to, int64_t rows, int64_t n,
                                      gp_cumsum_attr a)
{
    for (GP_EACH_BLOCK(row, rows)) {
        T before = 0;
        for (int64_t from = 0; from < n; from += blockDim.x) {
            const int64_t i = from + threadIdx.x, at = row * n + (a.reverse ? n - 1 - i : i);
            T one = 0, all;
            if (i < n)
                gp_cumsum_load(&x, at, &one);
            const T sum = before + gp_block_scan(one, a.exclusive, &all);
            if (i < n)
                gp_cumsum_store(&to, at, sum);
            before += all;
        }
    }
}

template <class T> static int gp_cumsum_start(const gp_call *c)
{
    const gp_cumsum_attr *a = (const gp_cumsum_attr *)c->attr;
    const int axis = (int)a->axis;
    const gp_tensor *x = &c->in[0];
    const int64_t outer = gp_span(x, 0, axis), n = x->dim[axis];
    const int64_t inner = gp_span(x, axis + 1, x->rank);
    const unsigned block = gp_block_of(inner == 1 ? n : outer * inner);
    if (inner == 1)
        GP_LAUNCH(c, gp_cumsum_rows<T>, gp_blocks(outer, 1), block, 0, *x, c->out[0], outer, n, *a);
    else
        GP_LAUNCH(c, gp_cumsum_columns<T>, gp_blocks(outer * inner, block), block, 0, *x, c->out[0],
                  outer, n, inner, *a);
    return GP_OK;
}

GP_KERNEL(cumsum)
{
    return gp_is_real(c->in[0].dtype) ? gp_cumsum_start<double>(c) : gp_cumsum_start<uint64_t>(c);
}

GP_TAKES_HALF(cumsum)

#endif
