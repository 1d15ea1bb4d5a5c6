/* examples/lenet.g with B = 2. */
#define CLASSES 10
#include "reference.h"

static Var *convolution(const char *name, const Var *x, int64_t c, int64_t s, int64_t k, int pad)
{
    return conv(x, param_of(name, "w"), param_of(name, "b"), 2, c, s, k, 5, 1, pad);
}

static Var loss_of(int64_t samples)
{
    (void)samples;
    Var *x = vars(2 * 784);
    for (int i = 0; i < 2 * 784; i++)
        x[i] = number((double)floats("images")[i]);
    x = pool(each(vtanh, convolution("conv1", x, 1, 28, 6, 2), 2 * 6 * 784), 2 * 6, 28, 0);
    x = pool(each(vtanh, convolution("conv2", x, 6, 14, 16, 0), 2 * 16 * 100), 2 * 16, 10, 0);
    x = each(vtanh, dense("fc1", x, 2, 400, 120), 2 * 120);
    x = each(vtanh, dense("fc2", x, 2, 120, 84), 2 * 84);
    return cross_entropy(dense("logits", x, 2, 84, 10), ints("labels"), 2, 10);
}
