/* argmax and argmin: the index of the first largest (smallest) of the reduced elements, counted in
 * row-major order of the reduced axes. A NaN compares before every number. One thread per output
 * where the last axis is kept, else one block. */
#ifndef GP_ARGMAX_CUH
#define GP_ARGMAX_CUH

#include "base.cuh"

template <class T> struct gp_arg_best {
    T x;
    int64_t place; /* -1: none yet */
};

/* Integers are compared as integers: a real type cannot represent them all. */
template <class T> __device__ inline T gp_arg_load(const gp_tensor *t, int64_t at);
template <> __device__ inline gp_real gp_arg_load<gp_real>(const gp_tensor *t, int64_t at)
{
    return gp_load_real(t, at);
}
template <> __device__ inline int64_t gp_arg_load<int64_t>(const gp_tensor *t, int64_t at)
{
    return gp_load_int(t, at);
}

template <class T> __device__ inline bool gp_arg_better(T x, T best, int least)
{
    return (least ? x < best : x > best) || (x != x && best == best);
}

/* Ties: the first. */
template <class T>
__device__ inline gp_arg_best<T> gp_arg_join(gp_arg_best<T> a, gp_arg_best<T> b, int least)
{
    if (a.place < 0 || b.place < 0)
        return a.place < 0 ? b : a;
    if (gp_arg_better(b.x, a.x, least))
        return b;
    return !gp_arg_better(a.x, b.x, least) && b.place < a.place ? b : a;
}

template <class T>
__device__ inline gp_arg_best<T> gp_arg_run(const gp_tensor *t, const gp_fold *fold, int64_t i,
                                            int64_t from, int64_t step, int least)
{
    const int64_t base =
        gp_line_at(&fold->outer, i / fold->width) + gp_line_at(&fold->wide, i % fold->width);
    gp_arg_best<T> best = {0, -1};
    for (int64_t k = from; k < fold->count; k += step) {
        const gp_arg_best<T> one = {gp_arg_load<T>(t, base + gp_line_at(&fold->in, k)), k};
        best = gp_arg_join(best, one, least);
    }
    return best;
}

template <class T>
static __global__ void gp_arg_columns(gp_tensor t, gp_fold fold, int least, int32_t *to)
{
    for (GP_EACH(i, fold.outers * fold.width))
        to[i] = (int32_t)gp_arg_run<T>(&t, &fold, i, 0, 1, least).place;
}

template <class T>
static __global__ void gp_arg_rows(gp_tensor t, gp_fold fold, int least, int32_t *to)
{
    GP_SHARED(gp_arg_best<T>, best, [GP_BLOCK]);
    for (GP_EACH_BLOCK(i, fold.outers)) {
        best[threadIdx.x] = gp_arg_run<T>(&t, &fold, i, threadIdx.x, blockDim.x, least);
        for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                best[threadIdx.x] = gp_arg_join(best[threadIdx.x], best[threadIdx.x + half], least);
        }
        if (threadIdx.x == 0)
            to[i] = (int32_t)best[0].place;
        __syncthreads(); /* all have read: the next row may be written */
    }
}

template <class T> static int gp_arg_start(const gp_call *c, int64_t axes, int least)
{
    const gp_fold fold = gp_fold_of(&c->in[0], axes);
    int32_t *to = (int32_t *)c->out[0].data;
    const int64_t outputs = fold.outers * fold.width;
    if (fold.width > 1) {
        const unsigned block = gp_block_of(outputs);
        GP_LAUNCH(c, gp_arg_columns<T>, gp_blocks(outputs, block), block, 0, c->in[0], fold, least,
                  to);
    } else {
        GP_LAUNCH(c, gp_arg_rows<T>, gp_blocks(outputs, 1), gp_block_of(fold.count), 0, c->in[0],
                  fold, least, to);
    }
    return GP_OK;
}

GP_HOST int gp_arg(const gp_call *c, int64_t axes, int least)
{
    return gp_is_real(c->in[0].dtype) ? gp_arg_start<gp_real>(c, axes, least)
                                      : gp_arg_start<int64_t>(c, axes, least);
}

GP_KERNEL(argmax)
{
    return gp_arg(c, ((const gp_argmax_attr *)c->attr)->axes, 0);
}

GP_KERNEL(argmin)
{
    return gp_arg(c, ((const gp_argmin_attr *)c->attr)->axes, 1);
}

GP_TAKES_HALF(argmax)
GP_TAKES_HALF(argmin)

#endif
