/* Whether a kernel's result is right, before it is timed: some of its numbers, drawn over all of
 * it, beside plain loops in double from the formula. Tensors are dense, as the benchmark has them.
 */
#ifndef RIGHT_H
#define RIGHT_H

#include "runtime/c/attend.h"
#include "runtime/c/conv2d.h"
#include "runtime/c/narrow.h"
#include "runtime/c/norm_grad.h"
#include "runtime/c/pool.h"
#include "runtime/c/update.h"

#include <math.h>

typedef int Right(const gp_call *c);

enum { SAMPLES = 200 };

/* What was compared so far: the largest difference, and the largest number that was wanted. */
typedef struct {
    uint64_t state;
    double off, largest, unit; /* unit: of what may be off */
} Sample;

/* Terms of a sum that a peer adds up one by one, so that its rounding grows with their root: 2.8
 * units at 50,176 terms of oneDNN's gradient by weights, where ours, in parts, has 0.05. 0: ours.
 */
static int64_t terms_in_a_row;

static Sample sample_begin(void)
{
    const double unit = 4 * sqrt((double)terms_in_a_row) * 0x1p-24;
    return (Sample){.state = 88172645463325252u, .unit = unit > 2e-5 ? unit : 2e-5};
}

/* Of results of this dtype: bf16 may round the other way, where a sum lies between two. */
static Sample sample_of(int dtype)
{
    Sample s = sample_begin();
    s.unit = dtype == GP_BF16 ? 0x1p-8 : s.unit;
    return s;
}

static int64_t pick(Sample *s, int64_t below)
{
    s->state ^= s->state << 13;
    s->state ^= s->state >> 7;
    s->state ^= s->state << 17;
    return (int64_t)(s->state % (uint64_t)below);
}

static void expect(Sample *s, double got, double want)
{
    const double off = fabs(got - want);
    s->off = off <= s->off ? s->off : off; /* a NaN stays */
    s->largest = fabs(want) > s->largest ? fabs(want) : s->largest;
}

static int agrees(const Sample *s)
{
    return s->off <= s->unit * s->largest;
}

static double real(const gp_tensor *t, int64_t at)
{
    return gp_get_real(t->data, at, t->dtype);
}

/* Whether a peer's result is the same, all of it. */
static int same_as_peer(const float *ours, const float *theirs, int64_t count)
{
    Sample s = sample_begin();
    for (int64_t i = 0; i < count; i++)
        expect(&s, ours[i], theirs[i]);
    return agrees(&s);
}

/* ---- Products and convolutions
 * -------------------------------------------------------------------
 */

static int right_product(const gp_call *c)
{
    const int64_t m = c->in[0].dim[0], k = c->in[0].dim[1], n = c->in[1].dim[1];
    Sample s = sample_begin();
    for (int i = 0; i < SAMPLES; i++) {
        const int64_t row = pick(&s, m), column = pick(&s, n);
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += real(&c->in[0], row * k + p) * real(&c->in[1], p * n + column);
        expect(&s, real(&c->out[0], row * n + column), sum);
    }
    return agrees(&s);
}

/* A convolution's three tensors, whichever of them is the result. */
typedef struct {
    const gp_tensor *x, *w, *y;
    const gp_conv2d_attr *a;
} ConvOf;

/* x[n, c, h, w] times the weight that takes it to y[n, o, i, j], as its place in x; -1: outside. */
static int64_t conv_from(const ConvOf *v, int64_t n, int64_t c, int64_t i, int64_t j, int64_t ki,
                         int64_t kj)
{
    const int64_t h = i * v->a->stride[0] - v->a->pad[0] + ki;
    const int64_t w = j * v->a->stride[1] - v->a->pad[1] + kj;
    if (h < 0 || h >= v->x->dim[2] || w < 0 || w >= v->x->dim[3])
        return -1;
    return ((n * v->x->dim[1] + c) * v->x->dim[2] + h) * v->x->dim[3] + w;
}

static double conv_forward_at(const ConvOf *v, int64_t n, int64_t o, int64_t i, int64_t j)
{
    const int64_t *k = v->w->dim, group = o / (v->y->dim[1] / v->a->groups);
    double sum = 0;
    for (int64_t c = 0; c < k[1]; c++)
        for (int64_t ki = 0; ki < k[2]; ki++)
            for (int64_t kj = 0; kj < k[3]; kj++) {
                const int64_t at = conv_from(v, n, group * k[1] + c, i, j, ki, kj);
                if (at >= 0)
                    sum += real(v->x, at) * real(v->w, ((o * k[1] + c) * k[2] + ki) * k[3] + kj);
            }
    return sum;
}

static int right_conv(const gp_call *c)
{
    const ConvOf v = {&c->in[0], &c->in[1], &c->out[0], c->attr};
    const int64_t *d = v.y->dim;
    Sample s = sample_of(c->out[0].dtype);
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t n = pick(&s, d[0]), o = pick(&s, d[1]), i = pick(&s, d[2]),
                      j = pick(&s, d[3]);
        expect(&s, real(v.y, ((n * d[1] + o) * d[2] + i) * d[3] + j),
               conv_forward_at(&v, n, o, i, j));
    }
    return agrees(&s);
}

static int right_conv_by_x(const gp_call *c)
{
    const ConvOf v = {&c->out[0], &c->in[1], &c->in[0], c->attr};
    const int64_t *d = v.y->dim, *k = v.w->dim, outs = d[1] / v.a->groups;
    Sample s = sample_of(c->out[0].dtype);
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, gp_count(v.x)), plane = v.x->dim[2] * v.x->dim[3];
        const int64_t channel = at / plane % v.x->dim[1], n = at / plane / v.x->dim[1];
        const int64_t h = at % plane / v.x->dim[3], w = at % v.x->dim[3], group = channel / k[1];
        double sum = 0;
        for (int64_t ki = 0; ki < k[2]; ki++)
            for (int64_t kj = 0; kj < k[3]; kj++) {
                const int64_t up = h + v.a->pad[0] - ki, left = w + v.a->pad[1] - kj;
                const int64_t i = up / v.a->stride[0], j = left / v.a->stride[1];
                if (up < 0 || left < 0 || up % v.a->stride[0] || left % v.a->stride[1] ||
                    i >= d[2] || j >= d[3])
                    continue;
                for (int64_t o = group * outs; o < (group + 1) * outs; o++)
                    sum += real(v.y, ((n * d[1] + o) * d[2] + i) * d[3] + j) *
                           real(v.w, ((o * k[1] + channel % k[1]) * k[2] + ki) * k[3] + kj);
            }
        expect(&s, real(v.x, at), sum);
    }
    return agrees(&s);
}

static int right_conv_by_w(const gp_call *c)
{
    const ConvOf v = {&c->in[0], &c->out[0], &c->in[1], c->attr};
    const int64_t *d = v.y->dim, *k = v.w->dim;
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES / 4; q++) {
        const int64_t at = pick(&s, gp_count(v.w)), kj = at % k[3], ki = at / k[3] % k[2];
        const int64_t channel = at / (k[2] * k[3]) % k[1], o = at / (k[1] * k[2] * k[3]);
        const int64_t from = o / (d[1] / v.a->groups) * k[1] + channel;
        double sum = 0;
        for (int64_t n = 0; n < d[0]; n++)
            for (int64_t i = 0; i < d[2]; i++)
                for (int64_t j = 0; j < d[3]; j++) {
                    const int64_t x = conv_from(&v, n, from, i, j, ki, kj);
                    if (x >= 0)
                        sum += real(v.x, x) * real(v.y, ((n * d[1] + o) * d[2] + i) * d[3] + j);
                }
        expect(&s, real(v.w, at), sum);
    }
    return agrees(&s);
}

/* ---- Rows
 * ----------------------------------------------------------------------------------------
 */

static int right_softmax(const gp_call *c)
{
    const int64_t rows = c->in[0].dim[0], n = c->in[0].dim[1];
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, rows) * n, k = pick(&s, n);
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += exp(real(&c->in[0], at + i));
        expect(&s, real(&c->out[0], at + k), exp(real(&c->in[0], at + k)) / sum);
    }
    return agrees(&s);
}

typedef struct {
    double mean, inverse;
} Moments;

static Moments moments_of(const gp_tensor *x, int64_t at, int64_t step, int64_t n, double eps)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += real(x, at + i * step);
    for (int64_t i = 0; i < n; i++)
        squares += pow(real(x, at + i * step) - sum / (double)n, 2);
    return (Moments){sum / (double)n, 1 / sqrt(squares / (double)n + eps)};
}

static int right_layernorm(const gp_call *c)
{
    const int64_t rows = c->in[0].dim[0], n = c->in[0].dim[1];
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, rows) * n, k = pick(&s, n);
        const Moments m = moments_of(&c->in[0], at, 1, n, 1e-5);
        expect(&s, real(&c->out[0], at + k),
               (real(&c->in[0], at + k) - m.mean) * m.inverse * real(&c->in[1], k) +
                   real(&c->in[2], k));
    }
    return agrees(&s);
}

/* Means and inverse deviations are operands: any numbers will do. */
static int right_norm_grad(const gp_call *c)
{
    const int64_t rows = c->in[0].dim[0], n = c->in[0].dim[1];
    Sample s = sample_begin(), scale = sample_begin(), bias = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t row = pick(&s, rows), at = row * n, k = pick(&s, n);
        const double mean = real(&c->in[3], row), inverse = real(&c->in[4], row);
        double sum = 0, along = 0;
        for (int64_t i = 0; i < n; i++) {
            const double g = real(&c->in[1], at + i) * real(&c->in[2], i);
            sum += g;
            along += g * (real(&c->in[0], at + i) - mean) * inverse;
        }
        const double unit = (real(&c->in[0], at + k) - mean) * inverse;
        expect(&s, real(&c->out[0], at + k),
               inverse * (real(&c->in[1], at + k) * real(&c->in[2], k) - sum / (double)n -
                          unit * along / (double)n));
    }
    for (int q = 0; q < 4; q++) {
        const int64_t k = pick(&s, n);
        double dscale = 0, dbias = 0, squares = 0;
        for (int64_t row = 0; row < rows; row++) {
            const double dy = real(&c->in[1], row * n + k);
            dbias += dy;
            squares += dy * dy;
            dscale +=
                dy * (real(&c->in[0], row * n + k) - real(&c->in[3], row)) * real(&c->in[4], row);
        }
        expect(&scale, real(&c->out[1], k), dscale);
        expect(&bias, real(&c->out[2], k), dbias);
        bias.largest = fmax(bias.largest, sqrt(squares)); /* of what cancels out */
        scale.largest = fmax(scale.largest, sqrt(squares));
    }
    return agrees(&s) && agrees(&scale) && agrees(&bias);
}

/* ---- Channels of images
 * ----------------------------------------------------------------------------
 */

static double channel_sum(const gp_tensor *x, int64_t channel, const gp_tensor *times, double mean,
                          double inverse, int power)
{
    const int64_t plane = x->dim[2] * x->dim[3];
    double sum = 0;
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t i = 0; i < plane; i++) {
            const int64_t at = (n * x->dim[1] + channel) * plane + i;
            sum += pow((real(x, at) - mean) * inverse, power) * (times ? real(times, at) : 1);
        }
    return sum;
}

static int right_batchnorm(const gp_call *c)
{
    const gp_tensor *x = &c->in[0];
    const int64_t plane = x->dim[2] * x->dim[3];
    const double count = (double)(x->dim[0] * plane);
    Sample s = sample_begin();
    for (int q = 0; q < 8; q++) {
        const int64_t channel = pick(&s, x->dim[1]);
        const double mean = channel_sum(x, channel, NULL, 0, 1, 1) / count;
        const double inverse = 1 / sqrt(channel_sum(x, channel, NULL, mean, 1, 2) / count + 1e-5);
        for (int i = 0; i < 8; i++) {
            const int64_t at =
                (pick(&s, x->dim[0]) * x->dim[1] + channel) * plane + pick(&s, plane);
            expect(&s, real(&c->out[0], at),
                   (real(x, at) - mean) * inverse * real(&c->in[1], channel) +
                       real(&c->in[2], channel));
        }
    }
    return agrees(&s);
}

static int right_batchnorm_grad(const gp_call *c)
{
    const gp_tensor *x = &c->in[0], *dy = &c->in[1];
    const int64_t plane = x->dim[2] * x->dim[3];
    const double count = (double)(x->dim[0] * plane);
    Sample s = sample_begin();
    for (int q = 0; q < 8; q++) {
        const int64_t channel = pick(&s, x->dim[1]);
        const double mean = real(&c->in[3], channel), inverse = real(&c->in[4], channel);
        const double sum = channel_sum(x, channel, dy, 0, 1, 0);
        const double along = channel_sum(x, channel, dy, mean, inverse, 1);
        expect(&s, real(&c->out[1], channel), along);
        expect(&s, real(&c->out[2], channel), sum);
        for (int i = 0; i < 8; i++) {
            const int64_t at =
                (pick(&s, x->dim[0]) * x->dim[1] + channel) * plane + pick(&s, plane);
            const double unit = (real(x, at) - mean) * inverse;
            /* scale stands beside what it is summed to, which is far larger: weigh it the same */
            expect(&s, real(&c->out[0], at) * count,
                   real(&c->in[2], channel) * inverse *
                       (real(dy, at) * count - sum - unit * along));
        }
    }
    return agrees(&s);
}

/* ---- Pools: windows of `kernel` by `stride`, margins of `pad`
 * ----------------------------------------
 */

typedef struct {
    int64_t kernel, stride, pad;
} PoolOf;

static PoolOf pool_of(const gp_call *c)
{
    const gp_maxpool2d_attr *a = c->attr; /* avgpool's begins the same way */
    return (PoolOf){a->kernel[0], a->stride[0], a->pad[0]};
}

/* The window of output i, j of a plane: the first largest, or NaN-free sum; `count` of elements. */
static double pool_window(const gp_tensor *x, int64_t plane, PoolOf p, int64_t i, int64_t j,
                          int64_t *largest, double *sum, int *count)
{
    double most = -INFINITY;
    *sum = 0;
    *count = 0;
    for (int64_t h = i * p.stride - p.pad; h < i * p.stride - p.pad + p.kernel; h++)
        for (int64_t w = j * p.stride - p.pad; w < j * p.stride - p.pad + p.kernel; w++) {
            if (h < 0 || w < 0 || h >= x->dim[2] || w >= x->dim[3])
                continue;
            const int64_t at = (plane * x->dim[2] + h) * x->dim[3] + w;
            if (real(x, at) > most) {
                most = real(x, at);
                *largest = at;
            }
            *sum += real(x, at);
            ++*count;
        }
    return most;
}

static int right_pool(const gp_call *c, int mean)
{
    const gp_tensor *x = &c->in[0], *y = &c->out[0];
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, gp_count(y)), area = y->dim[2] * y->dim[3];
        int64_t where;
        double sum;
        int count;
        const double most = pool_window(x, at / area, pool_of(c), at % area / y->dim[3],
                                        at % y->dim[3], &where, &sum, &count);
        expect(&s, real(y, at), mean ? sum / count : most);
    }
    return agrees(&s);
}

static int right_maxpool(const gp_call *c)
{
    return right_pool(c, 0);
}

static int right_avgpool(const gp_call *c)
{
    return right_pool(c, 1);
}

/* Every window that sees an element gives it its share, or all where it took the element. */
static double pool_share(const gp_tensor *places, const gp_tensor *dy, const gp_tensor *dx,
                         PoolOf p, int64_t at)
{
    const int64_t area = dx->dim[2] * dx->dim[3], plane = at / area;
    const int64_t h = at % area / dx->dim[3], w = at % dx->dim[3];
    double sum = 0;
    for (int64_t i = 0; i < dy->dim[2]; i++)
        for (int64_t j = 0; j < dy->dim[3]; j++) {
            const int64_t up = i * p.stride - p.pad, left = j * p.stride - p.pad;
            if (h < up || h >= up + p.kernel || w < left || w >= left + p.kernel)
                continue;
            const int64_t output = (plane * dy->dim[2] + i) * dy->dim[3] + j;
            int64_t where;
            double all;
            int count;
            pool_window(dx, plane, p, i, j, &where, &all, &count);
            if (!places)
                sum += real(dy, output) / count;
            else if (((const uint8_t *)places->data)[output] == (h - up) * p.kernel + w - left)
                sum += real(dy, output);
        }
    return sum;
}

static int right_maxpool_grad(const gp_call *c)
{
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, gp_count(&c->out[0]));
        expect(&s, real(&c->out[0], at),
               pool_share(&c->in[0], &c->in[1], &c->out[0], pool_of(c), at));
    }
    return agrees(&s);
}

static int right_avgpool_grad(const gp_call *c)
{
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, gp_count(&c->out[0]));
        expect(&s, real(&c->out[0], at), pool_share(NULL, &c->in[0], &c->out[0], pool_of(c), at));
    }
    return agrees(&s);
}

static int right_global_avgpool(const gp_call *c)
{
    const gp_tensor *x = &c->in[0];
    const int64_t plane = x->dim[2] * x->dim[3];
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, x->dim[0] * x->dim[1]);
        double sum = 0;
        for (int64_t i = 0; i < plane; i++)
            sum += real(x, at * plane + i);
        expect(&s, real(&c->out[0], at), sum / (double)plane);
    }
    return agrees(&s);
}

/* The first step with a learning rate of 0.01, out of place. */
static int right_adamw(const gp_call *c)
{
    const gp_adamw_attr *a = c->attr;
    Sample s = sample_begin();
    for (int q = 0; q < SAMPLES; q++) {
        const int64_t at = pick(&s, gp_count(&c->in[0]));
        const double w = real(&c->in[0], at), g = real(&c->in[1], at), lr = c->run->lr;
        const double m = a->beta1 * real(&c->in[3], at) + (1 - a->beta1) * g;
        const double v = a->beta2 * real(&c->in[4], at) + (1 - a->beta2) * g * g;
        const double root = sqrt(v / (1 - a->beta2)) + a->eps;
        expect(&s, real(&c->out[0], at),
               w - lr * a->weight_decay * w - lr * m / (1 - a->beta1) / root);
    }
    return agrees(&s);
}

/* ---- Attention: q, k, v [B, H, T, D], the rest [B, T, H, D]; causal
 * ------------------------------------
 */

static double dot(const gp_tensor *a, int64_t at, const gp_tensor *b, int64_t from, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += real(a, at + i) * real(b, from + i);
    return sum;
}

/* The weights of query t over keys 0 .. t. */
static void attend_weights(const gp_call *c, int64_t head, int64_t t, double *p)
{
    const int64_t d = c->in[0].dim[3], all = c->in[0].dim[2];
    const gp_attend_attr *a = c->attr;
    double sum = 0;
    for (int64_t j = 0; j <= t; j++)
        sum += p[j] = exp(a->scale *
                          dot(&c->in[0], (head * all + t) * d, &c->in[1], (head * all + j) * d, d));
    for (int64_t j = 0; j <= t; j++)
        p[j] /= sum;
}

static int64_t token_at(const gp_call *c, int64_t head, int64_t t)
{
    const int64_t *dim = c->in[0].dim;
    return ((head / dim[1] * dim[2] + t) * dim[1] + head % dim[1]) * dim[3];
}

enum { MOST_KEYS = 4096 };

static int right_attend(const gp_call *c)
{
    const int64_t *dim = c->in[0].dim, d = dim[3];
    double p[MOST_KEYS];
    Sample s = sample_begin();
    for (int q = 0; q < 40; q++) {
        const int64_t head = pick(&s, dim[0] * dim[1]), t = pick(&s, dim[2]), e = pick(&s, d);
        attend_weights(c, head, t, p);
        double sum = 0;
        for (int64_t j = 0; j <= t; j++)
            sum += p[j] * real(&c->in[2], (head * dim[2] + j) * d + e);
        expect(&s, real(&c->out[0], token_at(c, head, t) + e), sum);
    }
    return agrees(&s);
}

/* Of one score: p * (dout . v - dout . out). */
static double attend_slope(const gp_call *c, int64_t head, int64_t t, int64_t j, double p)
{
    const int64_t *dim = c->in[0].dim, d = dim[3], at = token_at(c, head, t);
    return p * (dot(&c->in[6], at, &c->in[2], (head * dim[2] + j) * d, d) -
                dot(&c->in[6], at, &c->in[4], at, d));
}

static int right_attend_grad(const gp_call *c)
{
    const int64_t *dim = c->in[0].dim, d = dim[3];
    const gp_attend_attr *a = c->attr;
    double p[MOST_KEYS];
    Sample dq = sample_begin(), dk = dq, dv = dq;
    for (int q = 0; q < 40; q++) {
        const int64_t head = pick(&dq, dim[0] * dim[1]), t = pick(&dq, dim[2]), e = pick(&dq, d);
        double sum = 0;
        attend_weights(c, head, t, p);
        for (int64_t j = 0; j <= t; j++)
            sum += attend_slope(c, head, t, j, p[j]) * real(&c->in[1], (head * dim[2] + j) * d + e);
        expect(&dq, real(&c->out[0], token_at(c, head, t) + e), a->scale * sum);
    }
    for (int q = 0; q < 2; q++) {
        const int64_t head = pick(&dq, dim[0] * dim[1]), j = pick(&dq, dim[2]), e = pick(&dq, d);
        double by_key = 0, by_value = 0;
        for (int64_t t = j; t < dim[2]; t++) {
            attend_weights(c, head, t, p);
            by_key +=
                attend_slope(c, head, t, j, p[j]) * real(&c->in[0], (head * dim[2] + t) * d + e);
            by_value += p[j] * real(&c->in[6], token_at(c, head, t) + e);
        }
        expect(&dk, real(&c->out[1], token_at(c, head, j) + e), a->scale * by_key);
        expect(&dv, real(&c->out[2], token_at(c, head, j) + e), by_value);
    }
    return agrees(&dq) && agrees(&dk) && agrees(&dv);
}

#endif
