#define CLASSES 5
#include "reference.h"

static Var loss_of(int64_t samples)
{
    int64_t n = samples ? samples : 8;
    Var *x = vars(8 * 6);
    for (int i = 0; i < 8 * 6; i++)
        x[i] = number((double)floats("x")[i]);
    Var *h = each(vtanh, dense("fc1", x, n, 6, 7), n * 7);
    return cross_entropy(dense("fc2", h, n, 7, 5), ints("labels"), n, 5);
}
