/* examples/gpt2.g, tiny, against a computation of its own. */
#include "model.h"

#include "layers.h"

/* As tests/models/run.sh shrinks it. */
enum { B = 2, T = 9, C = 16, L = 2, H = 4, V = 37, D = C / H, ROWS = B * T };

static double *get(const Model *m, int layer, const char *name, size_t n)
{
    char key[96];
    snprintf(key, sizeof key, "layer.%d.%s", layer, name);
    return tensor(m, key, n);
}

static double *norm(const double *x, double *scale, double *bias)
{
    double *y = zeros(ROWS * C);
    for (size_t r = 0; r < ROWS; r++) {
        double mean = 0, var = 0;
        for (size_t i = 0; i < C; i++)
            mean += x[r * C + i] / C;
        for (size_t i = 0; i < C; i++)
            var += (x[r * C + i] - mean) * (x[r * C + i] - mean) / C;
        for (size_t i = 0; i < C; i++)
            y[r * C + i] = (x[r * C + i] - mean) / sqrt(var + 1e-5) * scale[i] + bias[i];
    }
    free(scale);
    free(bias);
    return y;
}

static double *project(const double *x, size_t inputs, size_t units, double *w, double *b)
{
    double *y = ref_dense(x, ROWS, inputs, units, w, b);
    free(w);
    free(b);
    return y;
}

/* Every head of every position looks at the positions up to its own. */
static double *attend(const double *q, const double *k, const double *v)
{
    double *y = zeros(ROWS * C), score[T];
    for (size_t b = 0; b < B; b++)
        for (size_t h = 0; h < H; h++)
            for (size_t t = 0; t < T; t++) {
                const size_t row = (b * T + t) * C + h * D;
                for (size_t s = 0; s <= t; s++) {
                    score[s] = 0;
                    for (size_t d = 0; d < D; d++)
                        score[s] += q[row + d] * k[(b * T + s) * C + h * D + d];
                    score[s] /= sqrt((double)D);
                }
                ref_softmax(score, 1, t + 1);
                for (size_t s = 0; s <= t; s++)
                    for (size_t d = 0; d < D; d++)
                        y[row + d] += score[s] * v[(b * T + s) * C + h * D + d];
            }
    return y;
}

static void add(double *x, double *y)
{
    for (size_t i = 0; i < ROWS * C; i++)
        x[i] += y[i];
    free(y);
}

static double *self_attention(const Model *m, int l, const double *x)
{
    double *q =
        project(x, C, C, get(m, l, "attention.0.wq", C * C), get(m, l, "attention.0.bq", C));
    double *k =
        project(x, C, C, get(m, l, "attention.0.wk", C * C), get(m, l, "attention.0.bk", C));
    double *v =
        project(x, C, C, get(m, l, "attention.0.wv", C * C), get(m, l, "attention.0.bv", C));
    double *a = attend(q, k, v);
    double *y =
        project(a, C, C, get(m, l, "attention.0.wo", C * C), get(m, l, "attention.0.bo", C));
    free(q), free(k), free(v), free(a);
    return y;
}

static double *mlp(const Model *m, int l, const double *x)
{
    double *a = project(x, C, 4 * C, get(m, l, "mlp.dense.0.w", 4 * C * C),
                        get(m, l, "mlp.dense.0.b", 4 * C));
    for (size_t i = 0; i < ROWS * 4 * C; i++) {
        double u = a[i];
        a[i] = 0.5 * u * (1 + tanh(sqrt(2 / acos(-1)) * (u + 0.044715 * u * u * u)));
    }
    double *y =
        project(a, 4 * C, C, get(m, l, "mlp.dense.1.w", 4 * C * C), get(m, l, "mlp.dense.1.b", C));
    free(a);
    return y;
}

static double *embed(const double *tokens, const double *wte, const double *wpe)
{
    double *x = zeros(ROWS * C);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < C; i++)
            x[r * C + i] = wte[(size_t)tokens[r] * C + i] + wpe[r % T * C + i];
    return x;
}

int main(void)
{
    Model m = model_new(V);
    if (M(_forward)(&m.m))
        fail("forward");
    double *tokens = tensor(&m, "tokens", ROWS);
    double *wte = tensor(&m, "wte", V * C), *wpe = tensor(&m, "wpe", T * C);
    double *x = embed(tokens, wte, wpe);
    for (int l = 0; l < L; l++) {
        double *n = norm(x, get(&m, l, "layernorm.0.scale", C), get(&m, l, "layernorm.0.bias", C));
        add(x, self_attention(&m, l, n));
        free(n);
        n = norm(x, get(&m, l, "layernorm.1.scale", C), get(&m, l, "layernorm.1.bias", C));
        add(x, mlp(&m, l, n));
        free(n);
    }
    double *n = norm(x, tensor(&m, "layernorm.0.scale", C), tensor(&m, "layernorm.0.bias", C));
    double *y = zeros(ROWS * V);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t v = 0; v < V; v++)
            for (size_t i = 0; i < C; i++)
                y[r * V + v] += n[r * C + i] * wte[v * C + i];
    int wrong = compare(&m, "logits", y, ROWS * V, 1e-5);
    free(tokens), free(wte), free(wpe), free(x), free(n), free(y), free(m.arena);
    return wrong;
}
