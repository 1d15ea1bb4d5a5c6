#define CLASSES 1
#include "reference.h"

static Var loss_of(int64_t samples)
{
    int64_t n = samples ? samples : 6;
    const Var *w = param("w"), *k = param("k"), *still = param("still");
    Var sum = 0, *transposed = vars(16), *x = vars(24);
    for (int i = 0; i < 16; i++)
        transposed[i] = w[i % 4 * 4 + i / 4];
    for (int i = 0; i < 24; i++)
        x[i] = number((double)floats("x")[i]);
    Var *h = linear(x, w, NULL, n, 4, 4);
    for (int64_t i = 0; i < n * 4; i++)
        h[i] = mul(vtanh(h[i]), k[i % 4]);
    h = linear(h, transposed, w + 4, n, 4, 4);
    for (int64_t i = 0; i < n * 4; i++) {
        Var out = add(scale(h[i], val(h[i])), mul(h[i], still[i % 4]));
        Var off = sub(out, number((double)floats("y")[i]));
        sum = madd(sum, off, off);
    }
    return scale(sum, 1 / (double)(n * 4));
}
