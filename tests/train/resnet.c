#define CLASSES 5
#include "reference.h"

enum { N = 4 };

/* The block `conv` of the model: side s in, s / stride out. */
static Var *conv_norm(const char *name, const Var *x, int64_t c, int64_t s, int64_t k, int kernel,
                      int stride)
{
    char layer[128];
    snprintf(layer, sizeof layer, "%s.conv2d.0", name);
    Var *y = conv(x, param_of(layer, "w"), NULL, N, c, s, k, kernel, stride, (kernel - 1) / 2);
    snprintf(layer, sizeof layer, "%s.batchnorm.0", name);
    return batchnorm(layer, y, N, k, s / stride * (s / stride));
}

static Var *basic(const char *name, const Var *x, int64_t c, int64_t s, int64_t k, int stride)
{
    char inner[64];
    snprintf(inner, sizeof inner, "%s.conv", name);
    int64_t t = s / stride;
    Var *h = each(relu, conv_norm(inner, x, c, s, k, 3, stride), N * k * t * t);
    snprintf(inner, sizeof inner, "%s.conv.1", name);
    return conv_norm(inner, h, k, t, k, 3, 1);
}

static Var loss_of(int64_t samples)
{
    (void)samples;
    Var *x = vars(N * 3 * 64);
    for (int i = 0; i < N * 3 * 64; i++)
        x[i] = number((double)floats("images")[i]);
    Var *stem = each(relu, conv_norm("conv", x, 3, 8, 4, 3, 1), N * 4 * 64);
    int64_t count = N * 4 * 64;
    Var *h = each(relu, sum_of(basic("basic", stem, 4, 8, 4, 1), stem, count), count);
    count = N * 6 * 16;
    Var *main = basic("basic.1", h, 4, 8, 6, 2);
    h = each(relu, sum_of(main, conv_norm("conv.1", h, 4, 8, 6, 1, 2), count), count);
    return cross_entropy(dense("logits", plane_means(h, N * 6, 16), N, 6, 5), ints("labels"), N, 5);
}
