/* Normalisations: y = (x - mean) * inverse * scale + bias with inverse = 1 / sqrt(var + eps), over
 * rows of the last axes or over channels. */
#include "tests/interpreter/interpreter.h"

#include <math.h>
#include <stdlib.h>

/* ---- Rows of the last axes ------------------------------------------------------------------- */

static void norm_row(const Run *r, int64_t row, int64_t size, bool centre)
{
    const double *x = r->in[0].at + row * size;
    double mean = 0, squares = 0, *y = r->out[0].at + row * size;
    for (int64_t i = 0; centre && i < size; i++)
        mean += x[i] / (double)size;
    for (int64_t i = 0; i < size; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    double inverse = 1 / sqrt(squares / (double)size + run_number(r, "eps"));
    for (int64_t i = 0; i < size; i++) {
        double scale = r->ins > 1 && r->in[1].at ? r->in[1].at[i] : 1;
        double bias = r->ins > 2 && r->in[2].at ? r->in[2].at[i] : 0;
        y[i] = (x[i] - mean) * inverse * scale + bias;
    }
    if (centre)
        r->out[1].at[row] = mean;
    r->out[centre ? 2 : 1].at[row] = inverse;
}

/* With n = (x - mean) * inverse and d = dy * scale: dx = inverse * (d - mean(d) - n * mean(d n)).
 */
static void norm_row_back(const Run *r, int64_t row, int64_t size, bool centre)
{
    const double *x = r->in[0].at + row * size, *dy = r->dout[0].at + row * size;
    double mean = centre ? r->out[1].at[row] : 0, inverse = r->out[centre ? 2 : 1].at[row];
    double sum = 0, along = 0;
    for (int64_t i = 0; i < size; i++) {
        double n = (x[i] - mean) * inverse;
        double d = dy[i] * (r->ins > 1 && r->in[1].at ? r->in[1].at[i] : 1);
        sum += centre ? d / (double)size : 0;
        along += d * n / (double)size;
        if (r->ins > 1 && r->din[1].at)
            r->din[1].at[i] += dy[i] * n;
        if (r->ins > 2 && r->din[2].at)
            r->din[2].at[i] += dy[i];
    }
    for (int64_t i = 0; r->din[0].at && i < size; i++) {
        double n = (x[i] - mean) * inverse;
        double d = dy[i] * (r->ins > 1 && r->in[1].at ? r->in[1].at[i] : 1);
        r->din[0].at[row * size + i] += inverse * (d - sum - n * along);
    }
}

static void layernorm(const Run *r)
{
    int64_t rows = r->out[1].count;
    for (int64_t i = 0; i < rows; i++)
        norm_row(r, i, r->in[0].count / rows, true);
}

static void layernorm_back(const Run *r)
{
    int64_t rows = r->out[1].count;
    for (int64_t i = 0; i < rows; i++)
        norm_row_back(r, i, r->in[0].count / rows, true);
}

static void rmsnorm(const Run *r)
{
    int64_t rows = r->out[1].count;
    for (int64_t i = 0; i < rows; i++)
        norm_row(r, i, r->in[0].count / rows, false);
}

static void rmsnorm_back(const Run *r)
{
    int64_t rows = r->out[1].count;
    for (int64_t i = 0; i < rows; i++)
        norm_row_back(r, i, r->in[0].count / rows, false);
}

/* ---- Channels of the batch ------------------------------------------------------------------- */

/* Element i of those that channel c has. */
static int64_t channel_place(const Array *x, int64_t c, int64_t i)
{
    int64_t plane = x->count / x->dim[0] / x->dim[1];
    return (i / plane * x->dim[1] + c) * plane + i % plane;
}

/* In pairs, which is the order that loses least where sums are rounded. */
static double pair_sum(const double *term, int64_t count)
{
    if (count == 1)
        return stored(term[0]);
    return stored(pair_sum(term, count / 2) + pair_sum(term + count / 2, count - count / 2));
}

static void batchnorm(const Run *r)
{
    const Array *x = &r->in[0];
    int64_t count = x->count / x->dim[1];
    double eps = run_number(r, "eps"), *term = need_doubles(count);
    for (int64_t c = 0; c < x->dim[1]; c++) {
        for (int64_t i = 0; i < count; i++)
            term[i] = x->at[channel_place(x, c, i)];
        double mean = stored(pair_sum(term, count) / (double)count);
        for (int64_t i = 0; i < count; i++)
            term[i] = (term[i] - mean) * (term[i] - mean);
        double inverse = stored(1 / sqrt(pair_sum(term, count) / (double)count + eps));
        for (int64_t i = 0; i < count; i++) {
            int64_t at = channel_place(x, c, i);
            r->out[0].at[at] = (x->at[at] - mean) * inverse * r->in[1].at[c] + r->in[2].at[c];
        }
        r->out[1].at[c] = mean;
        r->out[2].at[c] = inverse;
    }
    free(term);
}

static void batchnorm_back(const Run *r)
{
    const Array *x = &r->in[0];
    int64_t count = x->count / x->dim[1];
    double *up = need_doubles(count), *along = need_doubles(count);
    for (int64_t c = 0; c < x->dim[1]; c++) {
        double mean = r->out[1].at[c], inverse = r->out[2].at[c], scale = r->in[1].at[c];
        for (int64_t i = 0; i < count; i++) {
            int64_t at = channel_place(x, c, i);
            up[i] = r->dout[0].at[at];
            along[i] = up[i] * (x->at[at] - mean) * inverse;
        }
        double bias_sum = pair_sum(up, count), scale_sum = pair_sum(along, count);
        if (r->din[1].at)
            r->din[1].at[c] += scale_sum;
        if (r->din[2].at)
            r->din[2].at[c] += bias_sum;
        double shift = stored(bias_sum / (double)count), slope = stored(scale_sum / (double)count);
        for (int64_t i = 0; r->din[0].at && i < count; i++) {
            int64_t at = channel_place(x, c, i);
            double n = (x->at[at] - mean) * inverse;
            r->din[0].at[at] += scale * inverse * (up[i] - shift - n * slope);
        }
    }
    free(up);
    free(along);
}

/* Moves towards the batch's; the variance that is kept is the estimate from a sample. */
static void running_stats(const Run *r)
{
    double momentum = run_number(r, "momentum"), count = run_number(r, "count");
    for (int64_t c = 0; c < r->out[0].count; c++) {
        double inverse = r->in[3].at[c], var = 1 / (inverse * inverse) - run_number(r, "eps");
        if (count > 1)
            var *= count / (count - 1);
        r->out[0].at[c] = (1 - momentum) * r->in[0].at[c] + momentum * r->in[2].at[c];
        r->out[1].at[c] = (1 - momentum) * r->in[1].at[c] + momentum * var;
    }
}

const Op naive_norms[] = {
    {"layernorm", layernorm, layernorm_back}, {"normalize", layernorm, layernorm_back},
    {"rmsnorm", rmsnorm, rmsnorm_back},       {"batchnorm_train", batchnorm, batchnorm_back},
    {"running_stats", running_stats, NULL},   {0}};
