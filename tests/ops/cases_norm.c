/* Normalisations: the definition, group of elements by group of elements. */
#include "tests/ops/cases.h"

#include <math.h>

/* y = (x - middle) / sqrt(spread + eps) over elements first, first + 1, ... of count n. */
static void normalise(const Tensor *x, Tensor *y, int64_t first, int64_t n, double eps, bool centre)
{
    double middle = 0, spread = 0;
    for (int64_t i = first; centre && i < first + n; i++)
        middle += x->at[i] / (double)n;
    for (int64_t i = first; i < first + n; i++)
        spread += (x->at[i] - middle) * (x->at[i] - middle) / (double)n;
    for (int64_t i = first; i < first + n; i++)
        y->at[i] = (x->at[i] - middle) / sqrt(spread + eps);
}

static int64_t row_length(const Case *c)
{
    const Tensor *x = &c->in[0];
    int64_t n = 1;
    for (int64_t i = 0; i < case_int(c, "axes"); i++)
        n *= x->dim[x->rank - 1 - i];
    return n;
}

static Tensor rows(const Case *c, bool centre)
{
    Tensor y = case_like(c, 0);
    int64_t n = row_length(c);
    for (int64_t first = 0; first < y.count; first += n) {
        normalise(&c->in[0], &y, first, n, case_number(c, "eps"), centre);
        for (int64_t i = 0; i < n; i++)
            y.at[first + i] = y.at[first + i] * c->in[1].at[i] + (centre ? c->in[2].at[i] : 0);
    }
    return y;
}

static Tensor layernorm(const Case *c)
{
    return rows(c, true);
}

static Tensor rmsnorm(const Case *c)
{
    return rows(c, false);
}

/* One number for each row: its mean, or 1 / sqrt(mean square of x - middle + eps). */
static Tensor statistic(const Case *c, bool centre, bool inverse)
{
    const Tensor *x = &c->in[0];
    int64_t n = row_length(c);
    Tensor y = case_new(c, F32, x->rank - (int)case_int(c, "axes"), x->dim);
    for (int64_t row = 0; row < y.count; row++) {
        double middle = 0, spread = 0;
        for (int64_t i = 0; centre && i < n; i++)
            middle += x->at[row * n + i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            spread += (x->at[row * n + i] - middle) * (x->at[row * n + i] - middle) / (double)n;
        y.at[row] = inverse ? 1 / sqrt(spread + case_number(c, "eps")) : middle;
    }
    return y;
}

static Tensor saved_mean(const Case *c)
{
    return statistic(c, true, false);
}

static Tensor saved_inverse(const Case *c)
{
    return statistic(c, true, true);
}

static Tensor saved_rms(const Case *c)
{
    return statistic(c, false, true);
}

static int64_t inside(const Tensor *x) /* elements of one channel of one sample */
{
    return x->count / x->dim[0] / x->dim[1];
}

static Tensor groups(const Case *c, int64_t count)
{
    Tensor y = case_like(c, 0);
    int64_t n = y.count / y.dim[0] / count;
    for (int64_t first = 0; first < y.count; first += n)
        normalise(&c->in[0], &y, first, n, case_number(c, "eps"), true);
    for (int64_t i = 0; i < y.count; i++) {
        int64_t channel = i / inside(&y) % y.dim[1];
        y.at[i] = y.at[i] * c->in[1].at[channel] + c->in[2].at[channel];
    }
    return y;
}

static Tensor groupnorm(const Case *c)
{
    return groups(c, case_int(c, "groups"));
}

static Tensor instancenorm(const Case *c)
{
    return groups(c, c->in[0].dim[1]);
}

static Tensor batchnorm(const Case *c)
{
    Tensor y = case_like(c, 0);
    for (int64_t i = 0; i < y.count; i++) {
        int64_t k = i / inside(&y) % y.dim[1];
        double deviation = sqrt(c->in[4].at[k] + case_number(c, "eps"));
        y.at[i] = (c->in[0].at[i] - c->in[3].at[k]) / deviation * c->in[1].at[k] + c->in[2].at[k];
    }
    return y;
}

/* Operands: x, and of each channel its mean, inverse deviation, scale and bias. */
static Tensor batchnorm_each(const Case *c)
{
    Tensor y = case_like(c, 0);
    for (int64_t i = 0; i < y.count; i++) {
        const int64_t k = i / inside(&y) % y.dim[1];
        y.at[i] = (c->in[0].at[i] - c->in[1].at[k]) * c->in[2].at[k] * c->in[3].at[k];
        y.at[i] += c->in[4].at[k];
    }
    return y;
}

/* Operands: the running mean and var, the mean and inverse deviation of a batch. */
#define RUNNING "f32[3] f32[3]:0.1..4 f32[3] f32[3]:0.2..2"

static Tensor running_mean(const Case *c)
{
    Tensor y = case_like(c, 0);
    for (int64_t i = 0; i < y.count; i++)
        y.at[i] = c->in[0].at[i] + case_number(c, "momentum") * (c->in[2].at[i] - c->in[0].at[i]);
    return y;
}

/* The variance of a batch is that of a sample. */
static Tensor running_var(const Case *c)
{
    Tensor y = case_like(c, 0);
    double count = case_number(c, "count"), sample = count > 1 ? count / (count - 1) : 1;
    for (int64_t i = 0; i < y.count; i++) {
        double var = 1 / (c->in[3].at[i] * c->in[3].at[i]) - case_number(c, "eps");
        y.at[i] = c->in[1].at[i] + case_number(c, "momentum") * (var * sample - c->in[1].at[i]);
    }
    return y;
}

OP_CASES(norm) = {
    {"layernorm", "f32[3, 5] - -", "", layernorm},
    {"layernorm", "f32[5] f32[5] f32[5]", "", layernorm},
    {"layernorm", "f32[2, 3, 700] f32[700] f32[700]", "", layernorm},
    {"layernorm", "f32[2, 3, 5] f32[3, 5] f32[3, 5]", "axes = 2", layernorm},
    {"layernorm", "f32[4, 1] f32[1] f32[1]", "eps = 0.1", layernorm},
    {"layernorm", "f32[4, 33]:1000..1001 f32[33] -", "", layernorm, 5e-3},
    {"layernorm", "f32[2, 3, 5] - -", "", saved_mean, 0, 1},
    {"layernorm", "f32[2, 3, 5] - -", "", saved_inverse, 0, 2},
    {"rmsnorm", "f32[3, 5] -", "", rmsnorm},
    {"rmsnorm", "f32[2, 3, 513] f32[513]", "eps = 1e-3", rmsnorm},
    {"rmsnorm", "f32[2, 3, 5] f32[2, 3, 5]", "axes = 3", rmsnorm},
    {"rmsnorm", "f32[4, 9] -", "", saved_rms, 0, 1},
    {"groupnorm", "f32[2, 6, 5, 3] f32[6] f32[6]", "groups = 3", groupnorm},
    {"groupnorm", "f32[2, 64] - -", "", groupnorm},
    {"groupnorm", "f32[1, 4, 7] f32[4] f32[4]", "groups = 1, eps = 0.01", groupnorm},
    {"instancenorm", "f32[2, 3, 5, 7] f32[3] f32[3]", "", instancenorm},
    {"instancenorm", "f32[2, 3, 4] - -", "", instancenorm},
    {"batchnorm", "f32[2, 3, 5, 7] f32[3] f32[3] f32[3] f32[3]:0.1..4", "", batchnorm},
    {"batchnorm", "f32[4, 3] f32[3] f32[3] f32[3] f32[3]:0.1..4", "eps = 0.01", batchnorm},
    {"batchnorm", "f32[2, 3, 9] - - - -", "momentum = 0.2, over = micro", batchnorm},
    {"batchnorm", "f32[2, 1, 2, 3, 2] - - - -", "", batchnorm},
    {"batchnorm_each", "f32[2, 3, 5, 7] f32[3, 1, 1] f32[3, 1, 1] f32[3, 1, 1] f32[3, 1, 1]", "",
     batchnorm_each},
    {"running_stats", RUNNING, "momentum = 0.2, eps = 0.01, count = 8", running_mean},
    {"running_stats", RUNNING, "momentum = 0.2, eps = 0.01, count = 8", running_var, .output = 1},
    {"running_stats", RUNNING, "momentum = 0.1, eps = 0.01, count = 1", running_var, .output = 1},
    {0},
};

OP_ERRORS(norm) = {
    {"layernorm", "f32[3, 5] f32[3]", "", "scale must be f32[5], as the last axes of x f32[3, 5]"},
    {"layernorm", "f32[3, 5]", "axes = 3",
     "axes = 3: cannot normalize so many of the last axes of x f32[3, 5]"},
    {"layernorm", "f32[3, 5]", "eps = -1", "eps = -1 must not be negative"},
    {"layernorm", "i32[3, 5]", "", "takes f32, not i32[3, 5]"},
    {"groupnorm", "f32[2, 6]", "groups = 4", "groups = 4 does not divide the 6 channels"},
    {"groupnorm", "f32[6]", "groups = 2", "x must be [N, C, ...] with the channels on axis 1"},
    {"batchnorm", "f32[2, 6] f32[5]", "", "scale must be f32[6], one for each channel of x"},
    {0},
};
