#define CLASSES 2
#include "reference.h"

enum { N = 2 };

/* The block `double` of the model. */
static Var *twice(const char *name, Var *x, int64_t c, int64_t s, int64_t k)
{
    for (int turn = 0; turn < 2; turn++, c = k) {
        char layer[64];
        snprintf(layer, sizeof layer, "%s.conv2d.%d", name, turn);
        x = conv(x, param_of(layer, "w"), NULL, N, c, s, k, 3, 1, 1);
        snprintf(layer, sizeof layer, "%s.batchnorm.%d", name, turn);
        x = each(relu, batchnorm(layer, x, N, k, s * s), N * k * s * s);
    }
    return x;
}

static Var loss_of(int64_t samples)
{
    (void)samples;
    Var *x = vars(N * 2 * 64), *joined = vars(N * 6 * 64);
    for (int i = 0; i < N * 2 * 64; i++)
        x[i] = number((double)floats("images")[i]);
    Var *a = twice("a", x, 2, 8, 3);
    Var *b = twice("b", pool(a, N * 3, 8, 1), 3, 4, 5);
    Var *u = conv_up(b, param("u.w"), param("u.b"), N, 5, 4, 3);
    for (int n = 0; n < N; n++)
        for (int i = 0; i < 3 * 64; i++) {
            joined[n * 6 * 64 + i] = a[n * 3 * 64 + i];
            joined[n * 6 * 64 + 3 * 64 + i] = u[n * 3 * 64 + i];
        }
    Var *c = twice("c", joined, 6, 8, 3);
    Var *logits = conv(c, param("logits.w"), param("logits.b"), N, 3, 8, 1, 1, 1, 0);
    Var sum = 0; /* log(1 + exp(x)) - x * mask */
    for (int i = 0; i < N * 64; i++) {
        Var one = vlog(add(vexp(logits[i]), number(1)));
        sum = add(sum, sub(one, scale(logits[i], (double)floats("masks")[i])));
    }
    return scale(sum, 1.0 / (N * 64));
}
