/* sum, mean, prod, max, min, var over any axes of a tensor of any strides.
 *
 * Where the last axis is kept, one thread per output, with coalesced reads; where it is reduced,
 * one block per output. Long sums are split into parts, added in order by a second grid. Reals are
 * accumulated in double: the kernel is bound by memory bandwidth. */
#ifndef GP_REDUCE_CUH
#define GP_REDUCE_CUH

#include "base.cuh"

enum { GP_FOLD_SUM, GP_FOLD_SQUARES, GP_FOLD_PROD, GP_FOLD_MAX, GP_FOLD_MIN };

GP_DEVICE double gp_fold_start(int how, double)
{
    return how == GP_FOLD_PROD  ? 1
           : how == GP_FOLD_MAX ? -(double)INFINITY
           : how == GP_FOLD_MIN ? (double)INFINITY
                                : 0;
}

GP_DEVICE int64_t gp_fold_start(int how, int64_t)
{
    return how == GP_FOLD_PROD  ? 1
           : how == GP_FOLD_MAX ? INT64_MIN
           : how == GP_FOLD_MIN ? INT64_MAX
                                : 0;
}

GP_DEVICE double gp_fold_add(double a, double b)
{
    return a + b;
}

GP_DEVICE double gp_fold_multiply(double a, double b)
{
    return a * b;
}

/* Integers wrap around like unsigned ones. */
GP_DEVICE int64_t gp_fold_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

GP_DEVICE int64_t gp_fold_multiply(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

struct gp_fold_join {
    int how;
    /* A NaN wins over every number. */
    template <class T> __device__ T operator()(T a, T b) const
    {
        switch (how) {
        case GP_FOLD_PROD:
            return gp_fold_multiply(a, b);
        case GP_FOLD_MAX:
            return b > a || b != b ? b : a;
        case GP_FOLD_MIN:
            return b < a || b != b ? b : a;
        default:
            return gp_fold_add(a, b);
        }
    }
};

GP_DEVICE void gp_fold_load(const gp_tensor *t, int64_t at, double *x)
{
    *x = (double)gp_load_real(t, at);
}

GP_DEVICE void gp_fold_load(const gp_tensor *t, int64_t at, int64_t *x)
{
    *x = gp_load_int(t, at);
}

/* A reduction and its destination. */
template <class T> struct gp_reduction {
    gp_tensor x;
    gp_fold fold;
    int how;
    int64_t chunks, each; /* elements of a part; the last has the rest */
    const double *mean;   /* of every output, for squares */
    int64_t by;           /* reals: the divisor of the result */
    T *part;              /* [chunk][output], NULL where there is one chunk */
    gp_tensor to;         /* contiguous */
    double *means;        /* written here instead, if not NULL */
};

GP_DEVICE double gp_fold_square(double x, double mean)
{
    return (x - mean) * (x - mean);
}

GP_DEVICE int64_t gp_fold_square(int64_t x, double)
{
    return x; /* var is of reals */
}

GP_DEVICE void gp_fold_store(const gp_reduction<double> *r, int64_t i, double x)
{
    const double result = x / (double)r->by;
    if (r->means)
        r->means[i] = result;
    else
        gp_set_real(r->to.data, i, r->to.dtype, (gp_real)result);
}

GP_DEVICE void gp_fold_store(const gp_reduction<int64_t> *r, int64_t i, int64_t x)
{
    gp_store_int(&r->to, i, x);
}

/* Elements from, from + step ... of output i's chunk. */
template <class T>
__device__ inline T gp_fold_run(const gp_reduction<T> *r, int64_t i, int64_t chunk, int64_t from,
                                int64_t step)
{
    const gp_fold_join join = {r->how};
    const int64_t base = gp_line_at(&r->fold.outer, i / r->fold.width) +
                         gp_line_at(&r->fold.wide, i % r->fold.width);
    const int64_t begin = chunk * r->each;
    const int64_t end = begin + r->each < r->fold.count ? begin + r->each : r->fold.count;
    const double mean = r->mean ? r->mean[i] : 0;
    T sum = gp_fold_start(r->how, T());
    for (int64_t k = begin + from; k < end; k += step) {
        T x;
        gp_fold_load(&r->x, base + gp_line_at(&r->fold.in, k), &x);
        sum = join(sum, r->mean ? gp_fold_square(x, mean) : x);
    }
    return sum;
}

/* One thread per output and chunk. */
template <class T> static __global__ void gp_reduce_columns(gp_reduction<T> r)
{
    const int64_t outputs = r.fold.outers * r.fold.width;
    for (GP_EACH(task, outputs * r.chunks)) {
        const int64_t i = task % outputs, chunk = task / outputs;
        const T sum = gp_fold_run(&r, i, chunk, 0, 1);
        if (r.part)
            r.part[task] = sum;
        else
            gp_fold_store(&r, i, sum);
    }
}

/* One block per output and chunk. */
template <class T> static __global__ void gp_reduce_rows(gp_reduction<T> r)
{
    const int64_t outputs = r.fold.outers * r.fold.width;
    const gp_fold_join join = {r.how};
    for (GP_EACH_BLOCK(task, outputs * r.chunks)) {
        const int64_t i = task % outputs, chunk = task / outputs;
        const T sum = gp_block_join(gp_fold_run(&r, i, chunk, threadIdx.x, blockDim.x), join);
        if (threadIdx.x > 0)
            continue;
        if (r.part)
            r.part[task] = sum;
        else
            gp_fold_store(&r, i, sum);
    }
}

template <class T> static __global__ void gp_reduce_parts_join(gp_reduction<T> r)
{
    const int64_t outputs = r.fold.outers * r.fold.width;
    const gp_fold_join join = {r.how};
    for (GP_EACH(i, outputs)) {
        T sum = r.part[i];
        for (int64_t chunk = 1; chunk < r.chunks; chunk++)
            sum = join(sum, r.part[chunk * outputs + i]);
        gp_fold_store(&r, i, sum);
    }
}

template <class T> static int gp_reduce_start(const gp_call *c, gp_reduction<T> r)
{
    const int64_t outputs = r.fold.outers * r.fold.width, tasks = outputs * r.chunks;
    if (r.chunks == 1)
        r.part = NULL;
    if (r.fold.width > 1) {
        const unsigned block = gp_block_of(tasks);
        GP_LAUNCH(c, gp_reduce_columns<T>, gp_blocks(tasks, block), block, 0, r);
    } else {
        GP_LAUNCH(c, gp_reduce_rows<T>, gp_blocks(tasks, 1), gp_block_of(r.each), 0, r);
    }
    if (r.part) {
        const unsigned block = gp_block_of(outputs);
        GP_LAUNCH(c, gp_reduce_parts_join<T>, gp_blocks(outputs, block), block, 0, r);
    }
    return GP_OK;
}

template <class T> GP_HOST gp_reduction<T> gp_reduction_of(const gp_call *c, int64_t axes, int how)
{
    gp_reduction<T> r = {};
    r.x = c->in[0];
    r.fold = gp_fold_of(&c->in[0], axes);
    r.how = how;
    r.chunks = gp_reduce_chunks(&r.fold);
    r.each = (r.fold.count + r.chunks - 1) / r.chunks;
    r.by = 1;
    r.part = (T *)c->work;
    r.to = c->out[0];
    return r;
}

GP_HOST int gp_reduce(const gp_call *c, int64_t axes, int how)
{
    if (gp_is_real(c->out[0].dtype))
        return gp_reduce_start(c, gp_reduction_of<double>(c, axes, how));
    return gp_reduce_start(c, gp_reduction_of<int64_t>(c, axes, how));
}

GP_KERNEL(sum)
{
    return gp_reduce(c, ((const gp_sum_attr *)c->attr)->axes, GP_FOLD_SUM);
}

GP_KERNEL(prod)
{
    return gp_reduce(c, ((const gp_prod_attr *)c->attr)->axes, GP_FOLD_PROD);
}

GP_KERNEL(max)
{
    return gp_reduce(c, ((const gp_max_attr *)c->attr)->axes, GP_FOLD_MAX);
}

GP_KERNEL(min)
{
    return gp_reduce(c, ((const gp_min_attr *)c->attr)->axes, GP_FOLD_MIN);
}

GP_KERNEL(mean)
{
    const gp_mean_attr *a = (const gp_mean_attr *)c->attr;
    gp_reduction<double> r = gp_reduction_of<double>(c, a->axes, GP_FOLD_SUM);
    r.by = r.fold.count;
    return gp_reduce_start(c, r);
}

GP_KERNEL(var)
{
    const gp_var_attr *a = (const gp_var_attr *)c->attr;
    gp_reduction<double> r = gp_reduction_of<double>(c, a->axes, GP_FOLD_SUM);
    double *means = (double *)c->work;
    r.part = means + gp_count(&c->out[0]);
    r.by = r.fold.count;
    r.means = means;
    const int code = gp_reduce_start(c, r);
    if (code != GP_OK)
        return code;
    r.how = GP_FOLD_SQUARES;
    r.by = r.fold.count - a->correction;
    r.mean = means;
    r.means = NULL;
    return gp_reduce_start(c, r);
}

GP_TAKES_HALF(sum)
GP_TAKES_HALF(prod)
GP_TAKES_HALF(max)
GP_TAKES_HALF(min)
GP_TAKES_HALF(mean)
GP_TAKES_HALF(var)

#endif
