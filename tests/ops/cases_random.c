/* Ops that draw numbers: that every way of running them draws the same ones. What is drawn is in
 * random_test.c. */
#include "tests/ops/cases.h"

#include <string.h>

static Tensor identity(const Case *c)
{
    Tensor y = case_like(c, 0);
    memcpy(y.at, c->in[0].at, (size_t)y.count * sizeof *y.at);
    return y;
}

OP_CASES(random) = {
    {"dropout", "f32[3, 5]", "rate = 0.9", identity},
    {"dropout", "f32[3, 5]", "rate = 0", identity, .training = true},
    {"dropout", "f32[3, 5]", "", NULL, .training = true},
    {"dropout", "f32[2, 300]", "rate = 0.25", NULL, .training = true},
    {"random_normal", "", "shape = [3, 5]", NULL},
    {"random_uniform", "", "shape = [300], low = -1, high = 2", NULL},
    {0},
};

OP_ERRORS(random) = {
    {"dropout", "f32[3]", "rate = 1", "rate = 1 must be in [0, 1)"},
    {"dropout", "i32[3]", "", "takes f32, not i32[3]"},
    {0},
};
