/* Prints the masks that training draws, so that runs in different micro-batches can be compared;
 * see dropout.g. */
#include "emitted.h"

#include <math.h>

enum { B = 8, N = 64 };

static int count_bits(long mask)
{
    int count = 0;
    for (; mask; mask &= mask - 1)
        count++;
    return count;
}

/* The masks of one step, as they stand in the parameter; all 0 before it. */
static void read_masks(const char *name, double rate, long mask[N])
{
    float *w = data(find(name));
    for (int i = 0; i < N; i++) {
        double number = -(double)w[i] * B * N * (1 - rate);
        mask[i] = lround(number);
        check(fabs(number - (double)mask[i]) < 1e-2, "the step is what the mask says");
        check(mask[i] >= 0 && mask[i] < 1 << B, "a mask has a bit for each sample");
        w[i] = 0;
    }
}

static int step(const char *name, double rate, long mask[N])
{
    static const char *const all[] = {"w", "v", "u"};
    long other[N];
    int kept = 0;
    expect_ok(M(_step)(&model, NULL), "step");
    read_masks(name, rate, mask);
    for (int k = 0; k < 3; k++)
        if (strcmp(all[k], name) != 0)
            read_masks(all[k], strcmp(all[k], "w") == 0 ? 0.25 : 0.5, other);
    for (int i = 0; i < N; i++)
        kept += count_bits(mask[i]);
    return kept;
}

static int same(const long *a, const long *b)
{
    return memcmp(a, b, N * sizeof *a) == 0;
}

int main(void)
{
    long first[N], second[N], again[N], v[N], u[N];
    model_begin(5);
    for (int i = 0; i < B * N; i++)
        dropout_x(&model)[i] = dropout_y(&model)[i] = (float)(1 << i / N);

    int kept = step("w", 0.25, first);
    printf("kept %d of %d\n", kept, B * N);
    check(kept > 350 && kept < 418, "a rate of 0.25");
    step("w", 0.25, second);
    check(!same(first, second), "the next step has other masks");
    step("v", 0.5, v);
    step("u", 0.5, u);
    for (int i = 0; i < N; i++)
        check(u[i] == 0 || u[i] == (1 << B) - 1, "a parameter's mask is the same for all samples");

    dropout_reset(&model, 5);
    step("w", 0.25, again);
    check(same(first, again), "the same seed and step have the same masks");
    dropout_reset(&model, 5);
    dropout_seed(&model, 6);
    step("w", 0.25, again);
    check(!same(first, again), "another seed has others");

    /* Neither forward nor eval drops anything. */
    float loss, *w = data(find("w"));
    for (int i = 0; i < N; i++)
        w[i] = 2;
    expect_ok(dropout_forward(&model), "forward");
    for (int i = 0; i < B * N; i++)
        check(dropout_out(&model)[i] == (float)(2 << i / N), "forward keeps all");
    expect_ok(dropout_eval(&model, &loss), "eval");
    check(loss == 2.0f * 255 / 8, "eval keeps all");

    for (int i = 0; i < N; i++)
        printf("%lx %lx %lx %lx\n", first[i], second[i], v[i], u[i]);
    return 0;
}
