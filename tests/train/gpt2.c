/* examples/gpt2.g with B = 3, T = 7, C = 12, L = 2, H = 3, V = 13; wte is both ends of it. */
#define CLASSES 13
#include "reference.h"

enum { N = 3, T = 7, C = 12, L = 2, H = 3, V = 13 };

static const char *in_layer(int layer, const char *what)
{
    static char name[4][64];
    static int next;
    next = (next + 1) % 4;
    snprintf(name[next], sizeof name[next], "layer.%d.%s", layer, what);
    return name[next];
}

static Var loss_of(int64_t samples)
{
    int64_t rows = (samples ? samples : N) * T;
    const Var *wte = param("wte"), *wpe = param("wpe");
    Var *h = vars(N * T * C), *transposed = vars(C * V);
    for (int64_t i = 0; i < N * T * C; i++)
        h[i] = add(wte[ints("tokens")[i / C] * C + i % C], wpe[i % (T * C)]);
    for (int layer = 0; layer < L; layer++) {
        Var *x = layernorm(in_layer(layer, "layernorm.0"), h, N * T, C);
        h = sum_of(h, attention(in_layer(layer, "attention.0"), x, N, T, C, H), N * T * C);
        x = layernorm(in_layer(layer, "layernorm.1"), h, N * T, C);
        x = each(gelu, dense(in_layer(layer, "mlp.dense.0"), x, N * T, C, 4 * C), N * T * 4 * C);
        h = sum_of(h, dense(in_layer(layer, "mlp.dense.1"), x, N * T, 4 * C, C), N * T * C);
    }
    h = layernorm("layernorm.0", h, N * T, C);
    for (int i = 0; i < C * V; i++)
        transposed[i] = wte[i % V * C + i / V];
    return cross_entropy(linear(h, transposed, NULL, N * T, C, V), ints("next"), rows, V);
}
