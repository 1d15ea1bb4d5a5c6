/* Layers over the tape: arrays of scalars in the order of C, dims as arguments. */
#ifndef TESTS_NET_H
#define TESTS_NET_H

#include "tape.h"

static const Var *param(const char *name); /* see reference.h */

static Var *vars(int64_t count)
{
    return need(malloc((size_t)count * sizeof(Var))); /* the tests are short: never freed */
}

static const Var *param_of(const char *layer, const char *what)
{
    char name[256];
    snprintf(name, sizeof name, "%s.%s", layer, what);
    return param(name);
}

static Var *each(Var (*f)(Var), const Var *x, int64_t count)
{
    Var *y = vars(count);
    for (int64_t i = 0; i < count; i++)
        y[i] = f(x[i]);
    return y;
}

static Var *sum_of(const Var *a, const Var *b, int64_t count)
{
    Var *y = vars(count);
    for (int64_t i = 0; i < count; i++)
        y[i] = add(a[i], b[i]);
    return y;
}

/* x @ w + b: [rows, in] @ [in, out]; b may be NULL. */
static Var *linear(const Var *x, const Var *w, const Var *b, int64_t rows, int64_t in, int64_t out)
{
    Var *y = vars(rows * out);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < out; o++) {
            Var sum = b ? b[o] : 0;
            for (int64_t i = 0; i < in; i++)
                sum = madd(sum, x[r * in + i], w[i * out + o]);
            y[r * out + o] = sum;
        }
    return y;
}

static Var *dense(const char *name, const Var *x, int64_t rows, int64_t in, int64_t out)
{
    return linear(x, param_of(name, "w"), param_of(name, "b"), rows, in, out);
}

/* [n, c, s, s] -> [n, k, t, t] with a square kernel; b may be NULL. */
static Var *conv(const Var *x, const Var *w, const Var *b, int64_t n, int64_t c, int64_t s,
                 int64_t k, int kernel, int stride, int pad)
{
    int64_t t = (s + 2 * pad - kernel) / stride + 1;
    Var *y = vars(n * k * t * t);
    for (int64_t i = 0; i < n * k * t * t; i++) {
        int64_t col = i % t, row = i / t % t, to = i / (t * t) % k, sample = i / (t * t * k);
        Var sum = b ? b[to] : 0;
        for (int64_t from = 0; from < c; from++)
            for (int p = 0; p < kernel; p++)
                for (int q = 0; q < kernel; q++) {
                    int64_t h = row * stride + p - pad, v = col * stride + q - pad;
                    if (h >= 0 && h < s && v >= 0 && v < s)
                        sum = madd(sum, x[((sample * c + from) * s + h) * s + v],
                                   w[((to * c + from) * kernel + p) * kernel + q]);
                }
        y[i] = sum;
    }
    return y;
}

/* kernel = stride = 2: every pixel becomes four. w: [c, k, 2, 2]. */
static Var *conv_up(const Var *x, const Var *w, const Var *b, int64_t n, int64_t c, int64_t s,
                    int64_t k)
{
    int64_t t = 2 * s;
    Var *y = vars(n * k * t * t);
    for (int64_t i = 0; i < n * k * t * t; i++) {
        int64_t col = i % t, row = i / t % t, to = i / (t * t) % k, sample = i / (t * t * k);
        Var sum = b[to];
        for (int64_t from = 0; from < c; from++)
            sum = madd(sum, x[((sample * c + from) * s + row / 2) * s + col / 2],
                       w[((from * k + to) * 2 + row % 2) * 2 + col % 2]);
        y[i] = sum;
    }
    return y;
}

/* Windows of 2x2 of planes of s x s. */
static Var *pool(const Var *x, int64_t planes, int64_t s, int largest)
{
    int64_t t = s / 2;
    Var *y = vars(planes * t * t);
    for (int64_t i = 0; i < planes * t * t; i++) {
        const Var *from = x + (i / (t * t) * s + i / t % t * 2) * s + i % t * 2;
        Var four[4] = {from[0], from[1], from[s], from[s + 1]}, best = four[0];
        for (int k = 1; k < 4; k++)
            best = val(four[k]) > val(best) ? four[k] : best;
        Var sum = add(add(four[0], four[1]), add(four[2], four[3]));
        y[i] = largest ? best : scale(sum, 0.25);
    }
    return y;
}

static Var *plane_means(const Var *x, int64_t planes, int64_t size)
{
    Var *y = vars(planes);
    for (int64_t i = 0; i < planes; i++) {
        Var sum = 0;
        for (int64_t k = 0; k < size; k++)
            sum = add(sum, x[i * size + k]);
        y[i] = scale(sum, 1 / (double)size);
    }
    return y;
}

/* (x - mean) / sqrt(var + eps) * scale + bias over the elements that `at` lists. */
typedef struct {
    double mean, var;
} Moments;

static Moments normalize(Var **at, int64_t count, Var **to, double eps)
{
    Var sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum = add(sum, *at[i]);
    Var mean = scale(sum, 1 / (double)count);
    for (int64_t i = 0; i < count; i++) {
        Var off = sub(*at[i], mean);
        squares = madd(squares, off, off);
    }
    Var var = scale(squares, 1 / (double)count);
    Var deviation = vsqrt(add(var, number(eps)));
    for (int64_t i = 0; i < count; i++)
        *to[i] = divide(sub(*at[i], mean), deviation);
    return (Moments){val(mean), val(var)};
}

/* Running statistics, in reference.h. */
static int inferring;
static void running(const char *layer, int64_t channel, Moments m, int64_t count);
static Moments running_of(const char *layer, int64_t channel);

static Var *batchnorm(const char *name, Var *x, int64_t n, int64_t c, int64_t size)
{
    const Var *factor = param_of(name, "scale"), *bias = param_of(name, "bias");
    Var *y = vars(n * c * size);
    Var **at = need(malloc((size_t)(n * size) * sizeof *at));
    Var **to = need(malloc((size_t)(n * size) * sizeof *to));
    for (int64_t k = 0; k < c; k++) {
        for (int64_t i = 0; i < n * size; i++) {
            int64_t place = (i / size * c + k) * size + i % size;
            at[i] = &x[place];
            to[i] = &y[place];
        }
        if (inferring) {
            Moments m = running_of(name, k);
            for (int64_t i = 0; i < n * size; i++)
                *to[i] = scale(sub(*at[i], number(m.mean)), 1 / sqrt(m.var + 1e-5));
        } else {
            running(name, k, normalize(at, n * size, to, 1e-5), n * size);
        }
        for (int64_t i = 0; i < n * size; i++)
            *to[i] = madd(bias[k], *to[i], factor[k]);
    }
    free(at);
    free(to);
    return y;
}

static Var *layernorm(const char *name, Var *x, int64_t rows, int64_t width)
{
    const Var *factor = param_of(name, "scale"), *bias = param_of(name, "bias");
    Var *y = vars(rows * width);
    Var **at = need(malloc((size_t)width * sizeof *at));
    Var **to = need(malloc((size_t)width * sizeof *to));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < width; i++) {
            at[i] = &x[r * width + i];
            to[i] = &y[r * width + i];
        }
        normalize(at, width, to, 1e-5);
        for (int64_t i = 0; i < width; i++)
            *to[i] = madd(bias[i], *to[i], factor[i]);
    }
    free(at);
    free(to);
    return y;
}

/* log(sum(exp(x))) */
static Var log_sum_exp(const Var *x, int64_t count)
{
    double most = val(x[0]);
    for (int64_t i = 1; i < count; i++)
        most = val(x[i]) > most ? val(x[i]) : most;
    Var sum = 0, shift = number(most);
    for (int64_t i = 0; i < count; i++)
        sum = add(sum, vexp(sub(x[i], shift)));
    return add(vlog(sum), shift);
}

static Var cross_entropy(const Var *logits, const int32_t *ids, int64_t rows, int64_t classes)
{
    Var sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum =
            add(sum, sub(log_sum_exp(logits + r * classes, classes), logits[r * classes + ids[r]]));
    return scale(sum, 1 / (double)rows);
}

/* Causal self-attention on [n, t, c]. */
static Var *attention(const char *name, const Var *x, int64_t n, int64_t t, int64_t c,
                      int64_t heads)
{
    int64_t width = c / heads, rows = n * t;
    Var *q = linear(x, param_of(name, "wq"), param_of(name, "bq"), rows, c, c);
    Var *k = linear(x, param_of(name, "wk"), param_of(name, "bk"), rows, c, c);
    Var *v = linear(x, param_of(name, "wv"), param_of(name, "bv"), rows, c, c);
    Var *mixed = vars(rows * c), *score = vars(t);
    for (int64_t s = 0; s < n; s++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < t; i++) {
                const int64_t first = s * t * c + h * width;
                for (int64_t j = 0; j <= i; j++) {
                    Var sum = 0;
                    for (int64_t d = 0; d < width; d++)
                        sum = madd(sum, q[first + i * c + d], k[first + j * c + d]);
                    score[j] = scale(sum, 1 / sqrt((double)width));
                }
                Var all = log_sum_exp(score, i + 1);
                for (int64_t d = 0; d < width; d++)
                    mixed[first + i * c + d] = 0;
                for (int64_t j = 0; j <= i; j++) {
                    Var weight = vexp(sub(score[j], all));
                    for (int64_t d = 0; d < width; d++)
                        mixed[first + i * c + d] =
                            madd(mixed[first + i * c + d], weight, v[first + j * c + d]);
                }
            }
    return linear(mixed, param_of(name, "wo"), param_of(name, "bo"), rows, c, c);
}

#endif
