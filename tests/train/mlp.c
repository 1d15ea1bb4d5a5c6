/* examples/mlp.g with B = 4 and H = 19. */
#define CLASSES 10
#include "reference.h"

static Var loss_of(int64_t samples)
{
    int64_t n = samples ? samples : 4;
    Var *x = vars(4 * 784);
    for (int i = 0; i < 4 * 784; i++)
        x[i] = number((double)floats("images")[i]);
    Var *h = each(relu, dense("fc1", x, n, 784, 19), n * 19);
    h = each(relu, dense("fc2", h, n, 19, 19), n * 19);
    return cross_entropy(dense("logits", h, n, 19, 10), ints("labels"), n, 10);
}
