/* Batch normalization in training, over all axes but the channel axis 1 of [N, C, ...].
 *
 * batchnorm_train: y, and the mean and inverse standard deviation of each channel (outputs 1 and
 * 2). batchnorm_grad: of x, scale and bias. Samples of x and dy may lie apart. running_stats: what
 * inference uses. A channel is summed sample by sample, in double, by one thread. */
#ifndef GP_BATCHNORM_H
#define GP_BATCHNORM_H

#include "row.h"
#include "settings.h"
#include "vector.h"
#include "wide_row.h"

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

/* Rows of x and dy, of 16 bits, that a thread has in f32. */
GP_FUNCTION size_t gp_batchnorm_work(const gp_call *c)
{
    const int64_t width = gp_channels_of(&c->in[0]).width;
    return gp_is_half(c) ? (size_t)(2 * c->run->threads * gp_widened_room(width)) * sizeof(gp_real)
                         : 0;
}

/* Channel k of sample n of operand i: where it lies, or in f32. Samples may lie apart. */
GP_FUNCTION gp_real *gp_batchnorm_x(const gp_call *c, int i, int64_t n, int64_t k, int64_t width)
{
    const gp_tensor *t = &c->in[i];
    gp_real *x = gp_element(t, n * t->stride[0] + k * width);
    if (GP_WAY(batchnorm_half, gp_is_half(c))) {
        const void *from = x;
        x = (gp_real *)c->work + (2 * gp_thread() + i) * gp_widened_room(width);
        gp_get_row(x, from, width, t->dtype);
    }
    return x;
}

/* Where its result is made: there, or over x in f32, which is rounded then. */
GP_FUNCTION gp_real *gp_batchnorm_y(const gp_call *c, gp_real *x, int64_t row, int64_t n)
{
    gp_real *y = (gp_real *)c->out[0].data + row * n;
    (void)x; /* of 16 bits alone */
    if (GP_WAY(batchnorm_half, gp_is_half(c)))
        y = x;
    return y;
}

GP_FUNCTION void gp_batchnorm_made(const gp_call *c, const gp_real *y, int64_t row, int64_t n)
{
    (void)c, (void)y, (void)row, (void)n;
    if (GP_WAY(batchnorm_half, gp_is_half(c)))
        gp_store_row(&c->out[0], row, y, n);
}

/* Whether a result this large goes around the caches; `other`: what it may be in place of. */
GP_FUNCTION int gp_batchnorm_streams(const gp_call *c, const gp_channels *s, const gp_real *other)
{
    const gp_real *out = c->out[0].data;
    return out && !gp_is_half(c) &&
           gp_streams(out, c->in[0].data, other, s->samples * s->channels * s->width);
}

/* The mean of channel k, and what its elements are off by, squared and summed. */
GP_FUNCTION double gp_batchnorm_squares(const gp_call *c, const gp_channels *s, int64_t k,
                                        gp_real *mean)
{
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < s->samples; n++)
        sum += (double)gp_row_sum(gp_batchnorm_x(c, 0, n, k, s->width), s->width);
    *mean = (gp_real)(sum / (double)(s->samples * s->width));
    for (int64_t n = 0; n < s->samples; n++)
        squares += (double)gp_row_squares(gp_batchnorm_x(c, 0, n, k, s->width), *mean, s->width);
    if (!(squares <= GP_LARGEST)) { /* over a row they overflow: an inverse of 0 would hide it */
        squares = 0;
        for (int64_t n = 0; n < s->samples; n++)
            squares += gp_row_large_squares(gp_batchnorm_x(c, 0, n, k, s->width), *mean, s->width);
    }
    return squares;
}

/* Channel k of the result. Operands: x, scale, bias. */
GP_FUNCTION void gp_batchnorm_apply(const gp_call *c, const gp_channels *s, int64_t k, gp_real mean,
                                    gp_real inverse, int streams)
{
    const gp_real factor = inverse * gp_get_real(c->in[1].data, k, c->in[1].dtype);
    const gp_real shift = gp_get_real(c->in[2].data, k, c->in[2].dtype);
    for (int64_t n = 0; n < s->samples && c->out[0].data; n++) {
        const int64_t row = n * s->channels + k;
        gp_real *x = gp_batchnorm_x(c, 0, n, k, s->width);
        gp_real *y = gp_batchnorm_y(c, x, row, s->width);
        gp_batchnorm_row(x, y, s->width, mean, factor, shift, streams);
        gp_batchnorm_made(c, y, row, s->width);
    }
    gp_stream_end();
}

/* The sum of dy over channel k, and that of dy by the normalized x. Operands: x, dy. */
GP_FUNCTION double gp_batchnorm_sum(const gp_call *c, const gp_channels *s, int64_t k, gp_real mean,
                                    gp_real inverse, double *along)
{
    double sum = 0;
    *along = 0;
    for (int64_t n = 0; n < s->samples; n++) {
        const gp_real *x = gp_batchnorm_x(c, 0, n, k, s->width);
        const gp_real *dy = gp_batchnorm_x(c, 1, n, k, s->width);
        sum += (double)gp_row_sum(dy, s->width);
        *along += (double)gp_row_along(dy, x, mean, s->width) * (double)inverse;
    }
    return sum;
}

/* Channel k of dx, from the means of these sums. Operands: x, dy, scale. */
GP_FUNCTION void gp_batchnorm_dx(const gp_call *c, const gp_channels *s, int64_t k, gp_real mean,
                                 gp_real inverse, double sum, double along, int streams)
{
    const gp_real factor = inverse * gp_get_real(c->in[2].data, k, c->in[2].dtype);
    const gp_real shift = (gp_real)sum, slope = (gp_real)along * inverse;
    for (int64_t n = 0; n < s->samples && c->out[0].data; n++) {
        const int64_t row = n * s->channels + k;
        gp_real *x = gp_batchnorm_x(c, 0, n, k, s->width),
                *dy = gp_batchnorm_x(c, 1, n, k, s->width);
        gp_real *dx = gp_batchnorm_y(c, x, row, s->width);
        gp_batchnorm_back(x, dy, dx, s->width, mean, factor, shift, slope, streams);
        gp_batchnorm_made(c, dx, row, s->width);
    }
    gp_stream_end();
}

GP_WORKSPACE(batchnorm_train)
{
    return gp_batchnorm_work(c);
}

GP_WAYS(batchnorm_train)
{
    gp_way(ways, "batchnorm_half", gp_is_half(c));
}

GP_KERNEL(batchnorm_train)
{
    const gp_batchnorm_train_attr *a = c->attr;
    const gp_channels s = gp_channels_of(&c->in[0]);
    gp_real *means = c->out[1].data, *inverses = c->out[2].data;
    const double count = (double)(s.samples * s.width);
    const int streams = gp_batchnorm_streams(c, &s, NULL);
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++) {
        gp_real mean;
        const double squares = gp_batchnorm_squares(c, &s, k, &mean);
        const gp_real inverse = (gp_real)(1 / sqrt(squares / count + a->eps));
        gp_batchnorm_apply(c, &s, k, mean, inverse, streams);
        if (means)
            means[k] = mean;
        if (inverses)
            inverses[k] = inverse;
    }
    return GP_OK;
}

/* Operands: x, dy, scale, mean, inverse standard deviation. May run in place of x or dy. */
GP_WORKSPACE(batchnorm_grad)
{
    return gp_batchnorm_work(c);
}

GP_WAYS(batchnorm_grad)
{
    gp_way(ways, "batchnorm_half", gp_is_half(c));
}

GP_KERNEL(batchnorm_grad)
{
    const gp_channels s = gp_channels_of(&c->in[0]);
    const gp_real *means = c->in[3].data, *inverses = c->in[4].data;
    gp_real *dscale = c->out[1].data, *dbias = c->out[2].data;
    const double count = (double)(s.samples * s.width);
    const int streams = gp_batchnorm_streams(c, &s, c->in[1].data);
    GP_PARALLEL(c->run, s.samples * s.channels * s.width > 8192)
    for (int64_t k = 0; k < s.channels; k++) {
        double along;
        const double sum = gp_batchnorm_sum(c, &s, k, means[k], inverses[k], &along);
        gp_batchnorm_dx(c, &s, k, means[k], inverses[k], sum / count, along / count, streams);
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
    const int64_t channels = c->in[0].dim[0], rows = gp_count(&c->in[2]);
    for (int64_t row = 0; row < rows; row += channels) { /* of each batch */
        for (int64_t k = 0; k < channels; k++) {
            const gp_real by = inverse[row + k];
            const double var = 1 / ((double)by * (double)by) - a->eps;
            running_mean[k] = old_mean[k] + part * (mean[row + k] - old_mean[k]);
            running_var[k] = old_var[k] + part * ((gp_real)(var * sample) - old_var[k]);
        }
        old_mean = running_mean;
        old_var = running_var;
    }
    return GP_OK;
}

#endif
