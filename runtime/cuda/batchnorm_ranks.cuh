/* Batch normalization over a batch that ranks divide: as in runtime/c/batchnorm_ranks.h, with the
 * sums of batchnorm.cuh. What is merged are two numbers for each channel of each rank. */
#ifndef GP_BATCHNORM_RANKS_CUH
#define GP_BATCHNORM_RANKS_CUH

#include "batchnorm.cuh"

static __global__ GP_UNUSED void gp_batchnorm_part_finish(gp_channels s, const double *sums,
                                                          const double *squares, gp_real *means,
                                                          gp_real *deviations)
{
    const double count = (double)(s.samples * s.width);
    for (GP_EACH(k, s.channels)) {
        means[k] = (gp_real)(gp_channel_join(&s, sums, k) / count);
        deviations[k] = (gp_real)sqrt(gp_channel_join(&s, squares, k) / count);
    }
}

GP_KERNEL(batchnorm_part)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    const int64_t tasks = s.channels * s.chunks;
    const gp_reals x = gp_reals_of(&c->in[0]);
    double *sums = (double *)c->work, *squares = sums + tasks;
    gp_real *means = (gp_real *)c->out[0].data;
    const unsigned block = gp_block_of(s.samples * s.width);
    GP_LAUNCH(c, gp_batchnorm_sums, gp_blocks(tasks, 1), block, 0, s, x, sums);
    GP_LAUNCH(c, gp_batchnorm_squares, gp_blocks(tasks, 1), block, 0, s, x, sums, squares);
    GP_LAUNCH(c, gp_batchnorm_part_finish, gp_blocks(s.channels, GP_WARP), GP_WARP, 0, s, sums,
              squares, means, means + s.channels);
    return GP_OK;
}

static __global__ GP_UNUSED void gp_batchnorm_merged(const gp_real *all, int64_t ranks,
                                                     int64_t channels, double eps, gp_real *means,
                                                     gp_real *inverses)
{
    for (GP_EACH(k, channels)) {
        double sum = 0, squares = 0;
        for (int64_t r = 0; r < ranks; r++)
            sum += (double)all[2 * r * channels + k];
        const double mean = sum / (double)ranks;
        for (int64_t r = 0; r < ranks; r++) {
            const double off = (double)all[2 * r * channels + k] - mean;
            const double deviation = (double)all[(2 * r + 1) * channels + k];
            squares += deviation * deviation + off * off;
        }
        means[k] = (gp_real)mean;
        inverses[k] = (gp_real)(1 / sqrt(squares / (double)ranks + eps));
    }
}

/* Operand: {mean, deviation} of each rank. */
GP_KERNEL(batchnorm_merge)
{
    const gp_batchnorm_merge_attr *a = (const gp_batchnorm_merge_attr *)c->attr;
    const int64_t ranks = c->in[0].dim[0], channels = c->in[0].dim[2];
    GP_LAUNCH(c, gp_batchnorm_merged, gp_blocks(channels, GP_WARP), GP_WARP, 0,
              (const gp_real *)c->in[0].data, ranks, channels, a->eps, (gp_real *)c->out[0].data,
              (gp_real *)c->out[1].data);
    return GP_OK;
}

/* Two numbers for each channel, for gp_batchnorm_apply. */
static __global__ GP_UNUSED void gp_batchnorm_factors(const gp_real *means, const gp_real *inverses,
                                                      gp_reals scale, int64_t channels,
                                                      gp_real *stats)
{
    for (GP_EACH(k, channels)) {
        stats[2 * k] = means[k];
        stats[2 * k + 1] = inverses[k] * scale[k];
    }
}

/* Operands: x, scale, bias, mean, inverse standard deviation. */
GP_KERNEL(batchnorm_given)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    gp_real *stats = (gp_real *)c->work;
    GP_LAUNCH(c, gp_batchnorm_factors, gp_blocks(s.channels, GP_WARP), GP_WARP, 0,
              (const gp_real *)c->in[3].data, (const gp_real *)c->in[4].data,
              gp_reals_of(&c->in[1]), s.channels, stats);
    if (c->out[0].data)
        GP_LAUNCH(c, gp_batchnorm_apply, gp_blocks(gp_count(&c->in[0]), GP_BLOCK), GP_BLOCK, 0, s,
                  gp_reals_of(&c->in[0]), stats, gp_reals_of(&c->in[2]), gp_reals_of(&c->out[0]));
    return GP_OK;
}

static __global__ GP_UNUSED void gp_batchnorm_sums_finish(gp_channels s, const double *sums,
                                                          const double *alongs,
                                                          const gp_real *inverses, gp_real *own,
                                                          gp_real *dscale, gp_real *dbias)
{
    for (GP_EACH(k, s.channels)) {
        const gp_real sum = (gp_real)gp_channel_join(&s, sums, k);
        const gp_real along = (gp_real)(gp_channel_join(&s, alongs, k) * (double)inverses[k]);
        own[k] = sum;
        own[s.channels + k] = along;
        if (dscale)
            dscale[k] = along;
        if (dbias)
            dbias[k] = sum;
    }
}

/* Operands: x, dy, mean, inverse standard deviation. */
GP_KERNEL(batchnorm_sums)
{
    gp_channels s = gp_channels_of(&c->in[0]);
    s.apart[1] = c->in[1].stride[0];
    const int64_t tasks = s.channels * s.chunks;
    double *sums = (double *)c->work, *alongs = sums + tasks;
    GP_LAUNCH(c, gp_batchnorm_grad_sums, gp_blocks(tasks, 1), gp_block_of(s.samples * s.width), 0,
              s, gp_reals_of(&c->in[0]), gp_reals_of(&c->in[1]), (const gp_real *)c->in[2].data,
              sums, alongs);
    GP_LAUNCH(c, gp_batchnorm_sums_finish, gp_blocks(s.channels, GP_WARP), GP_WARP, 0, s, sums,
              alongs, (const gp_real *)c->in[3].data, (gp_real *)c->out[0].data,
              (gp_real *)c->out[1].data, (gp_real *)c->out[2].data);
    return GP_OK;
}

/* Two numbers for each channel, for gp_batchnorm_grad_apply, from the sums of all ranks. */
static __global__ GP_UNUSED void gp_batchnorm_slopes(const gp_real *all, int64_t ranks,
                                                     int64_t channels, double count,
                                                     const gp_real *inverses, gp_real *stats)
{
    for (GP_EACH(k, channels)) {
        double sum = 0, along = 0;
        for (int64_t r = 0; r < ranks; r++) {
            sum += (double)all[2 * r * channels + k];
            along += (double)all[(2 * r + 1) * channels + k];
        }
        stats[2 * k] = (gp_real)(sum / count);
        stats[2 * k + 1] = (gp_real)(along / count) * inverses[k];
    }
}

/* Operands: x, dy, scale, mean, inverse standard deviation, the sums of all ranks. */
GP_KERNEL(batchnorm_given_grad)
{
    gp_channels s = gp_channels_of(&c->in[0]);
    s.apart[1] = c->in[1].stride[0];
    const int64_t ranks = c->in[5].dim[0];
    const gp_real *means = (const gp_real *)c->in[3].data;
    const gp_real *inverses = (const gp_real *)c->in[4].data;
    gp_real *stats = (gp_real *)c->work;
    GP_LAUNCH(c, gp_batchnorm_slopes, gp_blocks(s.channels, GP_WARP), GP_WARP, 0,
              (const gp_real *)c->in[5].data, ranks, s.channels,
              (double)(ranks * s.samples * s.width), inverses, stats);
    if (c->out[0].data)
        GP_LAUNCH(c, gp_batchnorm_grad_apply, gp_blocks(gp_count(&c->in[0]), GP_BLOCK), GP_BLOCK, 0,
                  s, gp_reals_of(&c->in[0]), gp_reals_of(&c->in[1]), gp_reals_of(&c->in[2]), means,
                  inverses, stats, gp_reals_of(&c->out[0]));
    return GP_OK;
}

GP_TAKES_HALF(batchnorm_part)
GP_TAKES_HALF(batchnorm_given)
GP_TAKES_HALF(batchnorm_sums)
GP_TAKES_HALF(batchnorm_given_grad)

#endif
