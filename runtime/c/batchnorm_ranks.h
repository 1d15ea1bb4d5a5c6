/* Batch normalization over a batch that ranks divide. Of its part a rank has a mean and a standard
 * deviation for each channel; those of all ranks are merged in rank order (Chan, Golub and LeVeque,
 * "Updating formulae and a pairwise algorithm for computing sample variances", 1979). */
#ifndef GP_BATCHNORM_RANKS_H
#define GP_BATCHNORM_RANKS_H

#include "batchnorm.h"

GP_WORKSPACE(batchnorm_part)
{
    return gp_batchnorm_work(c);
}

GP_WAYS(batchnorm_part)
{
    gp_way(ways, "batchnorm_half", gp_is_half(c));
}

GP_KERNEL(batchnorm_part)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    gp_real *means = c->out[0].data, *deviations = means + s.channels;
    const double count = (double)(s.samples * s.width);
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++) {
        gp_real mean;
        const double squares = gp_batchnorm_squares(c, &s, k, &mean);
        means[k] = mean;
        deviations[k] = (gp_real)sqrt(squares / count);
    }
    return GP_OK;
}

/* Operand: {mean, deviation} of each rank. */
GP_KERNEL(batchnorm_merge)
{
    const gp_batchnorm_merge_attr *a = c->attr;
    const int64_t ranks = c->in[0].dim[0], channels = c->in[0].dim[2];
    const gp_real *all = c->in[0].data;
    gp_real *means = c->out[0].data, *inverses = c->out[1].data;
    for (int64_t k = 0; k < channels; k++) {
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
        inverses[k] = (gp_real)(1 / sqrt(squares / (double)ranks + a->eps));
    }
    return GP_OK;
}

GP_WORKSPACE(batchnorm_given)
{
    return gp_batchnorm_work(c);
}

GP_WAYS(batchnorm_given)
{
    gp_way(ways, "batchnorm_half", gp_is_half(c));
}

/* Operands: x, scale, bias, mean, inverse standard deviation. */
GP_KERNEL(batchnorm_given)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    const gp_real *means = c->in[3].data, *inverses = c->in[4].data;
    const int streams = gp_batchnorm_streams(c, &s, NULL);
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++)
        gp_batchnorm_apply(c, &s, k, means[k], inverses[k], streams);
    return GP_OK;
}

GP_WORKSPACE(batchnorm_sums)
{
    return gp_batchnorm_work(c);
}

GP_WAYS(batchnorm_sums)
{
    gp_way(ways, "batchnorm_half", gp_is_half(c));
}

/* Operands: x, dy, mean, inverse standard deviation. */
GP_KERNEL(batchnorm_sums)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    const gp_real *means = c->in[2].data, *inverses = c->in[3].data;
    gp_real *sums = c->out[0].data, *dscale = c->out[1].data, *dbias = c->out[2].data;
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++) {
        double along;
        const double sum = gp_batchnorm_sum(c, &s, k, means[k], inverses[k], &along);
        sums[k] = (gp_real)sum;
        sums[s.channels + k] = (gp_real)along;
        if (dscale)
            dscale[k] = (gp_real)along;
        if (dbias)
            dbias[k] = (gp_real)sum;
    }
    return GP_OK;
}

GP_WORKSPACE(batchnorm_given_grad)
{
    return gp_batchnorm_work(c);
}

GP_WAYS(batchnorm_given_grad)
{
    gp_way(ways, "batchnorm_half", gp_is_half(c));
}

/* Operands: x, dy, scale, mean, inverse standard deviation, the sums of all ranks. */
GP_KERNEL(batchnorm_given_grad)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    const int64_t ranks = c->in[5].dim[0];
    const gp_real *means = c->in[3].data, *inverses = c->in[4].data, *all = c->in[5].data;
    const double count = (double)(ranks * s.samples * s.width);
    const int streams = gp_batchnorm_streams(c, &s, c->in[1].data);
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++) {
        double sum = 0, along = 0;
        for (int64_t r = 0; r < ranks; r++) {
            sum += (double)all[2 * r * s.channels + k];
            along += (double)all[(2 * r + 1) * s.channels + k];
        }
        gp_batchnorm_dx(c, &s, k, means[k], inverses[k], sum / count, along / count, streams);
    }
    return GP_OK;
}

#endif
