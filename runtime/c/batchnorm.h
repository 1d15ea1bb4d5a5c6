/* Batch normalization in training, over all axes but the channel axis 1 of [N, C, ...].
 *
 * batchnorm_train: y, and the mean and inverse standard deviation of each channel (outputs 1 and
 * 2). batchnorm_grad: of x, scale and bias. running_stats: what inference uses. A channel is summed
 * sample by sample, in double, by one thread. */
#ifndef GP_BATCHNORM_H
#define GP_BATCHNORM_H

#include "row.h"
#include "settings.h"
#include "vector.h"

typedef struct {
    int64_t samples, channels, width; /* width: elements of a channel in a sample */
} gp_channels;

GP_FUNCTION gp_channels gp_channels_of(const gp_tensor *t)
{
    return (gp_channels){t->dim[0], t->dim[1], gp_span(t, 2, t->rank)};
}

/* y = (x - mean) * factor + shift */
GP_FUNCTION void gp_batchnorm_row(const gp_real *x, gp_real *y, int64_t n, gp_real mean,
                                  gp_real factor, gp_real shift, int streams)
{
    gp_real piece[GP_STREAM_PIECE];
    for (int64_t i = 0; i < n; i += GP_STREAM_PIECE) {
        const int64_t some = gp_stream_piece(n - i);
        gp_real *at = streams ? piece : y + i;
        GP_IVDEP
        for (int64_t j = 0; j < some; j++)
            at[j] = (x[i + j] - mean) * factor + shift;
        if (streams)
            gp_stream(y + i, piece, some, x + n + i);
    }
}

/* dx = factor * (dy - shift - (x - mean) * slope) */
GP_FUNCTION void gp_batchnorm_back(const gp_real *x, const gp_real *dy, gp_real *dx, int64_t n,
                                   gp_real mean, gp_real factor, gp_real shift, gp_real slope,
                                   int streams)
{
    gp_real piece[GP_STREAM_PIECE];
    for (int64_t i = 0; i < n; i += GP_STREAM_PIECE) {
        const int64_t some = gp_stream_piece(n - i);
        gp_real *at = streams ? piece : dx + i;
        GP_IVDEP
        for (int64_t j = 0; j < some; j++)
            at[j] = factor * (dy[i + j] - shift - (x[i + j] - mean) * slope);
        if (streams)
            gp_stream(dx + i, piece, some, x + n + i);
    }
}

GP_KERNEL(batchnorm_train)
{
    const gp_batchnorm_train_attr *a = c->attr;
    const gp_channels s = gp_channels_of(&c->in[0]);
    const gp_real *in = c->in[0].data, *scale = c->in[1].data, *bias = c->in[2].data;
    gp_real *out = c->out[0].data, *means = c->out[1].data, *inverses = c->out[2].data;
    const double count = (double)(s.samples * s.width);
    const int streams = out && gp_streams(out, in, NULL, s.samples * s.channels * s.width);
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++) {
        double sum = 0, squares = 0;
        for (int64_t n = 0; n < s.samples; n++)
            sum += (double)gp_row_sum(in + (n * s.channels + k) * s.width, s.width);
        const gp_real mean = (gp_real)(sum / count);
        for (int64_t n = 0; n < s.samples; n++)
            squares += (double)gp_row_squares(in + (n * s.channels + k) * s.width, mean, s.width);
        if (!(squares <=
              GP_LARGEST)) { /* over a row they overflow: an inverse of 0 would hide it */
            squares = 0;
            for (int64_t n = 0; n < s.samples; n++)
                squares += gp_row_large_squares(in + (n * s.channels + k) * s.width, mean, s.width);
        }
        const gp_real inverse = (gp_real)(1 / sqrt(squares / count + a->eps));
        const gp_real factor = inverse * scale[k], shift = bias[k];
        for (int64_t n = 0; n < s.samples && out; n++)
            gp_batchnorm_row(in + (n * s.channels + k) * s.width,
                             out + (n * s.channels + k) * s.width, s.width, mean, factor, shift,
                             streams);
        gp_stream_end();
        if (means)
            means[k] = mean;
        if (inverses)
            inverses[k] = inverse;
    }
    return GP_OK;
}

/* Operands: x, dy, scale, mean, inverse standard deviation. May run in place of x or dy. */
GP_KERNEL(batchnorm_grad)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    const gp_real *in = c->in[0].data, *up = c->in[1].data, *scale = c->in[2].data;
    const gp_real *means = c->in[3].data, *inverses = c->in[4].data;
    gp_real *out = c->out[0].data, *dscale = c->out[1].data, *dbias = c->out[2].data;
    const double count = (double)(s.samples * s.width);
    const int streams = out && gp_streams(out, in, up, s.samples * s.channels * s.width);
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++) {
        const gp_real mean = means[k], inverse = inverses[k];
        double sum = 0, along = 0;
        for (int64_t n = 0; n < s.samples; n++) {
            const int64_t at = (n * s.channels + k) * s.width;
            sum += (double)gp_row_sum(up + at, s.width);
            along += (double)gp_row_along(up + at, in + at, mean, s.width) * (double)inverse;
        }
        const gp_real shift = (gp_real)(sum / count), slope = (gp_real)(along / count) * inverse;
        for (int64_t n = 0; n < s.samples && out; n++) {
            const int64_t at = (n * s.channels + k) * s.width;
            gp_batchnorm_back(in + at, up + at, out + at, s.width, mean, inverse * scale[k], shift,
                              slope, streams);
        }
        gp_stream_end();
        if (dscale)
            dscale[k] = (gp_real)along;
        if (dbias)
            dbias[k] = (gp_real)sum;
    }
    return GP_OK;
}

/* Moves mean and var towards those of the batch, with the unbiased variance. Operands: running mean
 * and var, then the mean and inverse standard deviation of the batch. */
GP_KERNEL(running_stats)
{
    const gp_running_stats_attr *a = c->attr;
    const gp_real *old_mean = c->in[0].data, *old_var = c->in[1].data;
    const gp_real *mean = c->in[2].data, *inverse = c->in[3].data;
    gp_real *running_mean = c->out[0].data, *running_var = c->out[1].data;
    const gp_real part = (gp_real)a->momentum;
    const double sample = a->count > 1 ? a->count / (a->count - 1) : 1;
    for (int64_t k = 0; k < c->in[0].dim[0]; k++) {
        const double var = 1 / ((double)inverse[k] * (double)inverse[k]) - a->eps;
        running_mean[k] = old_mean[k] + part * (mean[k] - old_mean[k]);
        running_var[k] = old_var[k] + part * ((gp_real)(var * sample) - old_var[k]);
    }
    return GP_OK;
}

#endif
