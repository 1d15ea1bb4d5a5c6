/* examples/lenet.g against a computation of its own. */
#include "model.h"

#include "layers.h"

enum { BATCH = LENET_IMAGES_COUNT / (28 * 28) };

static double at(const double *x, size_t size, long row, long column)
{
    bool inside = row >= 0 && column >= 0 && row < (long)size && column < (long)size;
    return inside ? x[(size_t)row * size + (size_t)column] : 0;
}

/* A 5x5 convolution on squares, with a margin of zeros; then tanh and the mean of 2x2. */
static double *convolve(const Model *m, const char *name, const double *x, size_t from, size_t to,
                        size_t size, size_t margin)
{
    char key[64];
    size_t out = size + 2 * margin - 4, half = out / 2;
    snprintf(key, sizeof key, "%s.w", name);
    double *w = tensor(m, key, to * from * 25);
    snprintf(key, sizeof key, "%s.b", name);
    double *b = tensor(m, key, to), *y = zeros(BATCH * to * half * half);
    for (size_t n = 0; n < BATCH; n++)
        for (size_t o = 0; o < to; o++)
            for (size_t r = 0; r < 2 * half; r++)
                for (size_t c = 0; c < 2 * half; c++) {
                    double sum = b[o];
                    for (size_t i = 0; i < from; i++)
                        for (size_t k = 0; k < 25; k++)
                            sum += w[(o * from + i) * 25 + k] *
                                   at(x + (n * from + i) * size * size, size,
                                      (long)(r + k / 5) - (long)margin,
                                      (long)(c + k % 5) - (long)margin);
                    y[((n * to + o) * half + r / 2) * half + c / 2] += tanh(sum) / 4;
                }
    free(w);
    free(b);
    return y;
}

static double *layer(const Model *m, const char *name, double *x, size_t inputs, size_t units)
{
    char key[64];
    snprintf(key, sizeof key, "%s.w", name);
    double *w = tensor(m, key, inputs * units);
    snprintf(key, sizeof key, "%s.b", name);
    double *b = tensor(m, key, units), *y = ref_dense(x, BATCH, inputs, units, w, b);
    free(w), free(b), free(x);
    return y;
}

static double *squash(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = tanh(x[i]);
    return x;
}

int main(void)
{
    Model m = model_new(10);
    if (M(_forward)(&m.m))
        fail("forward");
    double *x = tensor(&m, "images", LENET_IMAGES_COUNT);
    double *a = convolve(&m, "conv1", x, 1, 6, 28, 2);
    double *b = convolve(&m, "conv2", a, 6, 16, 14, 0);
    double *y = squash(layer(&m, "fc1", b, 400, 120), BATCH * 120);
    y = squash(layer(&m, "fc2", y, 120, 84), BATCH * 84);
    y = layer(&m, "logits", y, 84, 10);
    ref_softmax(y, BATCH, 10);
    int wrong = compare(&m, "probs", y, BATCH * 10, 1e-5);
    free(x), free(a), free(y), free(m.arena);
    return wrong;
}
