/* examples/mlp.g against a computation of its own. */
#include "model.h"

#include "layers.h"

enum { H = MLP_H_SIZE, BATCH = MLP_IMAGES_COUNT / 784 };

static void relu(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
}

static double *layer(const Model *m, const char *name, const double *x, size_t inputs, size_t units)
{
    char key[64];
    snprintf(key, sizeof key, "%s.w", name);
    double *w = tensor(m, key, inputs * units);
    snprintf(key, sizeof key, "%s.b", name);
    double *b = tensor(m, key, units), *y = ref_dense(x, BATCH, inputs, units, w, b);
    free(w);
    free(b);
    return y;
}

int main(void)
{
    Model m = model_new(10);
    if (M(_forward)(&m.m))
        fail("forward");
    double *x = tensor(&m, "images", MLP_IMAGES_COUNT);
    double *a = layer(&m, "fc1", x, 784, H);
    relu(a, BATCH * H);
    double *b = layer(&m, "fc2", a, H, H);
    relu(b, BATCH * H);
    double *y = layer(&m, "logits", b, H, 10);
    ref_softmax(y, BATCH, 10);
    int wrong = compare(&m, "probs", y, BATCH * 10, 1e-5);
    free(x), free(a), free(b), free(y), free(m.arena);
    return wrong;
}
