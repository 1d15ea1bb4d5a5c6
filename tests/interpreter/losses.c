/* Losses of class ids, the mean over samples, softmax. */
#include "tests/interpreter/interpreter.h"

#include <math.h>

static double log_sum_exp(const double *x, int64_t count, int64_t stride)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, x[i * stride]);
    for (int64_t i = 0; i < count; i++)
        sum += exp(x[i * stride] - most);
    return most + log(sum);
}

/* What class i should have: label smoothing spreads a share over all (Szegedy et al., 2015). */
static double target(double smoothing, int64_t id, int64_t i, int64_t classes)
{
    return (i == id ? 1 - smoothing : 0) + smoothing / (double)classes;
}

static bool ignored(const Run *r, int64_t id)
{
    return run_int(r, "ignore") && id == run_int(r, "ignored");
}

static void cross_entropy(const Run *r)
{
    int64_t rows = r->in[1].count, classes = r->in[0].count / rows;
    double smoothing = run_number(r, "label_smoothing");
    for (int64_t row = 0; row < rows; row++) {
        const double *x = r->in[0].at + row * classes, all = log_sum_exp(x, classes, 1);
        int64_t id = (int64_t)r->in[1].at[row];
        r->out[1].at[row] = all;
        if (ignored(r, id))
            continue;
        for (int64_t i = 0; i < classes; i++)
            r->out[0].at[row] += target(smoothing, id, i, classes) * (all - x[i]);
    }
}

static void cross_entropy_back(const Run *r)
{
    int64_t rows = r->in[1].count, classes = r->in[0].count / rows;
    double smoothing = run_number(r, "label_smoothing");
    for (int64_t row = 0; r->din[0].at && row < rows; row++) {
        const double *x = r->in[0].at + row * classes;
        int64_t id = (int64_t)r->in[1].at[row];
        if (ignored(r, id))
            continue;
        for (int64_t i = 0; i < classes; i++)
            r->din[0].at[row * classes + i] +=
                r->dout[0].at[row] *
                (exp(x[i] - r->out[1].at[row]) - target(smoothing, id, i, classes));
    }
}

/* The whole batch counts, so each loss weighs the same in the mean. */
static void loss_weight(const Run *r)
{
    for (int64_t i = 0; i < r->in[0].count; i++)
        r->out[0].at[i] = r->in[0].at[i] / (double)r->in[0].count;
}

static void loss_share_back(const Run *r)
{
    for (int64_t i = 0; r->din[0].at && i < r->in[0].count; i++)
        r->din[0].at[i] += r->dout[0].at[i] / (double)r->in[0].count;
}

/* ---- softmax along an axis ------------------------------------------------------------------- */

typedef struct {
    int64_t lines, length, stride;
} Lines;

static Lines lines_of(const Run *r)
{
    int axis = (int)run_int(r, "axis");
    Lines l = {.length = r->in[0].dim[axis], .stride = 1};
    for (int i = axis + 1; i < r->in[0].rank; i++)
        l.stride *= r->in[0].dim[i];
    l.lines = r->in[0].count / l.length;
    return l;
}

static int64_t line_begin(const Lines *l, int64_t line)
{
    return line / l->stride * l->length * l->stride + line % l->stride;
}

static void softmax(const Run *r)
{
    Lines l = lines_of(r);
    for (int64_t line = 0; line < l.lines; line++) {
        int64_t first = line_begin(&l, line);
        double all = log_sum_exp(r->in[0].at + first, l.length, l.stride);
        for (int64_t i = 0; i < l.length; i++)
            r->out[0].at[first + i * l.stride] = exp(r->in[0].at[first + i * l.stride] - all);
    }
}

static void softmax_back(const Run *r)
{
    Lines l = lines_of(r);
    for (int64_t line = 0; r->din[0].at && line < l.lines; line++) {
        int64_t first = line_begin(&l, line);
        const double *y = r->out[0].at + first, *dy = r->dout[0].at + first;
        double sum = 0;
        for (int64_t i = 0; i < l.length; i++)
            sum += y[i * l.stride] * dy[i * l.stride];
        for (int64_t i = 0; i < l.length; i++)
            r->din[0].at[first + i * l.stride] += y[i * l.stride] * (dy[i * l.stride] - sum);
    }
}

static void log_softmax(const Run *r)
{
    Lines l = lines_of(r);
    for (int64_t line = 0; line < l.lines; line++) {
        int64_t first = line_begin(&l, line);
        double all = log_sum_exp(r->in[0].at + first, l.length, l.stride);
        for (int64_t i = 0; i < l.length; i++)
            r->out[0].at[first + i * l.stride] = r->in[0].at[first + i * l.stride] - all;
    }
}

static void log_softmax_back(const Run *r)
{
    Lines l = lines_of(r);
    for (int64_t line = 0; r->din[0].at && line < l.lines; line++) {
        int64_t first = line_begin(&l, line);
        double sum = 0;
        for (int64_t i = 0; i < l.length; i++)
            sum += r->dout[0].at[first + i * l.stride];
        for (int64_t i = 0; i < l.length; i++) {
            int64_t at = first + i * l.stride;
            r->din[0].at[at] += r->dout[0].at[at] - exp(r->out[0].at[at]) * sum;
        }
    }
}

const Op naive_losses[] = {{"cross_entropy_rows", cross_entropy, cross_entropy_back},
                           {"loss_weight", loss_weight, loss_share_back},
                           {"softmax", softmax, softmax_back},
                           {"log_softmax", log_softmax, log_softmax_back},
                           {0}};
