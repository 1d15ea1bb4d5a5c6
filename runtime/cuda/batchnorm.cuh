/* Batch normalization in training, over all axes but the channel axis 1 of [N, C, ...].
 *
 * batchnorm_train: y, and the mean and inverse standard deviation of each channel (outputs 1 and
 * 2). batchnorm_grad: of x, scale and bias. Samples of x and dy may lie apart. running_stats: what
 * inference uses. Blocks sum parts of a channel in double; the parts of a channel are added in
 * order. */
#ifndef GP_BATCHNORM_CUH
#define GP_BATCHNORM_CUH

#include "base.cuh"

/* Where element j of channel k lies in x, and in dy. */
typedef struct {
    int64_t x, dy;
} gp_channel_place;

GP_DEVICE gp_channel_place gp_channel_at(const gp_channels *s, int64_t k, int64_t j)
{
    const int64_t n = j / s->width, within = k * s->width + j % s->width;
    const gp_channel_place place = {n * s->apart[0] + within, n * s->apart[1] + within};
    return place;
}

/* Where element i of a dense tensor lies there. */
GP_DEVICE gp_channel_place gp_channel_of(const gp_channels *s, int64_t i)
{
    const int64_t size = s->channels * s->width, n = i / size, within = i % size;
    const gp_channel_place place = {n * s->apart[0] + within, n * s->apart[1] + within};
    return place;
}

GP_DEVICE double gp_channel_join(const gp_channels *s, const double *part, int64_t k)
{
    double sum = 0;
    for (int64_t i = 0; i < s->chunks; i++)
        sum += part[k * s->chunks + i];
    return sum;
}

/* A block's part of a channel: `term` of every element, summed; the same in all its threads. */
template <class Term>
__device__ inline double gp_channel_sum(const gp_channels *s, int64_t k, int64_t chunk, Term term)
{
    const int64_t count = s->samples * s->width, each = (count + s->chunks - 1) / s->chunks;
    const int64_t end = (chunk + 1) * each < count ? (chunk + 1) * each : count;
    double sum = 0;
    for (int64_t j = chunk * each + threadIdx.x; j < end; j += blockDim.x)
        sum += term(gp_channel_at(s, k, j));
    return gp_block_sum(sum);
}

struct gp_channel_value {
    gp_reals x;
    __device__ double operator()(gp_channel_place at) const
    {
        return (double)x[at.x];
    }
};

struct gp_channel_square {
    gp_reals x;
    gp_real mean;
    __device__ double operator()(gp_channel_place at) const
    {
        return gp_square(x[at.x] - mean);
    }
};

struct gp_channel_slope {
    gp_reals dy;
    __device__ double operator()(gp_channel_place at) const
    {
        return (double)dy[at.dy];
    }
};

struct gp_channel_along {
    gp_reals dy, x;
    gp_real mean;
    __device__ double operator()(gp_channel_place at) const
    {
        return (double)(dy[at.dy] * (x[at.x] - mean));
    }
};

static __global__ void gp_batchnorm_sums(gp_channels s, gp_reals x, double *part)
{
    const gp_channel_value value = {x};
    for (GP_EACH_BLOCK(task, s.channels * s.chunks)) {
        const double sum = gp_channel_sum(&s, task / s.chunks, task % s.chunks, value);
        if (threadIdx.x == 0)
            part[task] = sum;
    }
}

static __global__ void gp_batchnorm_squares(gp_channels s, gp_reals x, const double *sums,
                                            double *part)
{
    for (GP_EACH_BLOCK(task, s.channels * s.chunks)) {
        const int64_t k = task / s.chunks;
        const double count = (double)(s.samples * s.width);
        const gp_channel_square square = {x, (gp_real)(gp_channel_join(&s, sums, k) / count)};
        const double sum = gp_channel_sum(&s, k, task % s.chunks, square);
        if (threadIdx.x == 0)
            part[task] = sum;
    }
}

/* Two numbers for each channel, for gp_batchnorm_apply: its mean and its factor. */
static __global__ void gp_batchnorm_finish(gp_channels s, const double *sums, const double *squares,
                                           gp_reals scale, double eps, gp_real *means,
                                           gp_real *inverses, gp_real *stats)
{
    for (GP_EACH(k, s.channels)) {
        const double count = (double)(s.samples * s.width);
        const gp_real mean = (gp_real)(gp_channel_join(&s, sums, k) / count);
        const gp_real inverse = (gp_real)(1 / sqrt(gp_channel_join(&s, squares, k) / count + eps));
        stats[2 * k] = mean;
        stats[2 * k + 1] = inverse * scale[k];
        if (means)
            means[k] = mean;
        if (inverses)
            inverses[k] = inverse;
    }
}

static __global__ void gp_batchnorm_apply(gp_channels s, gp_reals x, const gp_real *stats,
                                          gp_reals bias, gp_reals y)
{
    for (GP_EACH(i, s.samples * s.channels * s.width)) {
        const int64_t k = i / s.width % s.channels;
        const gp_real unit = (x[gp_channel_of(&s, i).x] - stats[2 * k]) * stats[2 * k + 1];
        y.put(i, unit + bias[k]);
    }
}

GP_KERNEL(batchnorm_train)
{
    const gp_batchnorm_train_attr *a = (const gp_batchnorm_train_attr *)c->attr;
    const gp_channels s = gp_channels_of(&c->in[0]);
    const int64_t tasks = s.channels * s.chunks, count = gp_count(&c->in[0]);
    const gp_reals x = gp_reals_of(&c->in[0]), scale = gp_reals_of(&c->in[1]);
    const gp_reals bias = gp_reals_of(&c->in[2]), y = gp_reals_of(&c->out[0]);
    gp_real *means = (gp_real *)c->out[1].data;
    gp_real *inverses = (gp_real *)c->out[2].data;
    double *sums = (double *)c->work, *squares = sums + tasks;
    gp_real *stats = (gp_real *)(squares + tasks);
    const unsigned block = gp_block_of(s.samples * s.width);
    GP_LAUNCH(c, gp_batchnorm_sums, gp_blocks(tasks, 1), block, 0, s, x, sums);
    GP_LAUNCH(c, gp_batchnorm_squares, gp_blocks(tasks, 1), block, 0, s, x, sums, squares);
    GP_LAUNCH(c, gp_batchnorm_finish, gp_blocks(s.channels, GP_WARP), GP_WARP, 0, s, sums, squares,
              scale, a->eps, means, inverses, stats);
    if (y.at)
        GP_LAUNCH(c, gp_batchnorm_apply, gp_blocks(count, GP_BLOCK), GP_BLOCK, 0, s, x, stats, bias,
                  y);
    return GP_OK;
}

static __global__ void gp_batchnorm_grad_sums(gp_channels s, gp_reals x, gp_reals dy,
                                              const gp_real *means, double *sums, double *alongs)
{
    for (GP_EACH_BLOCK(task, s.channels * s.chunks)) {
        const int64_t k = task / s.chunks, chunk = task % s.chunks;
        const gp_channel_slope slope = {dy};
        const gp_channel_along product = {dy, x, means[k]};
        const double sum = gp_channel_sum(&s, k, chunk, slope);
        const double along = gp_channel_sum(&s, k, chunk, product);
        if (threadIdx.x == 0) {
            sums[task] = sum;
            alongs[task] = along;
        }
    }
}

/* Two numbers for each channel, for gp_batchnorm_grad_apply: shift and slope. */
static __global__ void gp_batchnorm_grad_finish(gp_channels s, const double *sums,
                                                const double *alongs, const gp_real *inverses,
                                                gp_real *dscale, gp_real *dbias, gp_real *stats)
{
    for (GP_EACH(k, s.channels)) {
        const double count = (double)(s.samples * s.width), sum = gp_channel_join(&s, sums, k);
        const double along = gp_channel_join(&s, alongs, k) * (double)inverses[k];
        stats[2 * k] = (gp_real)(sum / count);
        stats[2 * k + 1] = (gp_real)(along / count) * inverses[k];
        if (dscale)
            dscale[k] = (gp_real)along;
        if (dbias)
            dbias[k] = (gp_real)sum;
    }
}

static __global__ void gp_batchnorm_grad_apply(gp_channels s, gp_reals x, gp_reals dy,
                                               gp_reals scale, const gp_real *means,
                                               const gp_real *inverses, const gp_real *stats,
                                               gp_reals dx)
{
    for (GP_EACH(i, s.samples * s.channels * s.width)) {
        const int64_t k = i / s.width % s.channels;
        const gp_real factor = inverses[k] * scale[k];
        const gp_channel_place at = gp_channel_of(&s, i);
        dx.put(i, factor * (dy[at.dy] - stats[2 * k] - (x[at.x] - means[k]) * stats[2 * k + 1]));
    }
}

/* Operands: x, dy, scale, mean, inverse standard deviation. May run in place of x or dy. */
GP_KERNEL(batchnorm_grad)
{
    gp_channels s = gp_channels_of(&c->in[0]);
    s.apart[1] = c->in[1].stride[0];
    const int64_t tasks = s.channels * s.chunks, count = gp_count(&c->in[0]);
    const gp_reals x = gp_reals_of(&c->in[0]), dy = gp_reals_of(&c->in[1]);
    const gp_reals scale = gp_reals_of(&c->in[2]), dx = gp_reals_of(&c->out[0]);
    const gp_real *means = (const gp_real *)c->in[3].data;
    const gp_real *inverses = (const gp_real *)c->in[4].data;
    gp_real *dscale = (gp_real *)c->out[1].data;
    gp_real *dbias = (gp_real *)c->out[2].data;
    double *sums = (double *)c->work, *alongs = sums + tasks;
    gp_real *stats = (gp_real *)(alongs + tasks);
    GP_LAUNCH(c, gp_batchnorm_grad_sums, gp_blocks(tasks, 1), gp_block_of(s.samples * s.width), 0,
              s, x, dy, means, sums, alongs);
    GP_LAUNCH(c, gp_batchnorm_grad_finish, gp_blocks(s.channels, GP_WARP), GP_WARP, 0, s, sums,
              alongs, inverses, dscale, dbias, stats);
    if (dx.at)
        GP_LAUNCH(c, gp_batchnorm_grad_apply, gp_blocks(count, GP_BLOCK), GP_BLOCK, 0, s, x, dy,
                  scale, means, inverses, stats, dx);
    return GP_OK;
}

GP_TAKES_HALF(batchnorm_train)
GP_TAKES_HALF(batchnorm_grad)

static __global__ void gp_running_stats_move(const gp_real *old_mean, const gp_real *old_var,
                                             const gp_real *mean, const gp_real *inverse,
                                             int64_t count, int64_t rows, gp_running_stats_attr a,
                                             gp_real *running_mean, gp_real *running_var)
{
    const gp_real part = (gp_real)a.momentum;
    const double sample = a.count > 1 ? a.count / (a.count - 1) : 1;
    for (GP_EACH(k, count)) {
        gp_real to_mean = old_mean[k], to_var = old_var[k];
        for (int64_t row = 0; row < rows; row++) { /* of each batch */
            const gp_real by = inverse[row * count + k];
            const double var = 1 / ((double)by * (double)by) - a.eps;
            to_mean = to_mean + part * (mean[row * count + k] - to_mean);
            to_var = to_var + part * ((gp_real)(var * sample) - to_var);
        }
        running_mean[k] = to_mean;
        running_var[k] = to_var;
    }
}

/* Moves mean and var towards those of the batch, with the unbiased variance. Operands: running mean
 * and var, then the mean and inverse standard deviation of the batch. */
GP_KERNEL(running_stats)
{
    const gp_running_stats_attr *a = (const gp_running_stats_attr *)c->attr;
    const int64_t count = c->in[0].dim[0];
    const gp_real *old_mean = (const gp_real *)c->in[0].data;
    const gp_real *old_var = (const gp_real *)c->in[1].data;
    const gp_real *mean = (const gp_real *)c->in[2].data;
    const gp_real *inverse = (const gp_real *)c->in[3].data;
    GP_LAUNCH(c, gp_running_stats_move, gp_blocks(count, GP_WARP), GP_WARP, 0, old_mean, old_var,
              mean, inverse, count, gp_count(&c->in[2]) / count, *a, (gp_real *)c->out[0].data,
              (gp_real *)c->out[1].data);
    return GP_OK;
}

#endif
