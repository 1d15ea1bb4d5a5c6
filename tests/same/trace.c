/* What an emitted model computes, as one hash a tensor: inputs are filled from a seed, then
 * forward, eval and three steps of training are run. Outputs are hashed after forward and after
 * eval, losses after each step, parameters and state at the end. Lines are for `sort`: the order of
 * the table of tensors is not compared. */
#include "tests/models/model.h"

enum { INPUT, OUTPUT, STEPS = 3 };

static uint64_t hash(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ at[i]) * 1099511628211u;
    return sum;
}

static void check(int status)
{
    if (status)
        fail(M(_strerror)(status));
}

static void print(const Model *model, const char *when, int outputs)
{
    size_t count;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++)
        if (t[i].kind != INPUT && (t[i].kind == OUTPUT) == outputs)
            printf("%s %s %016llx\n", when, t[i].name,
                   (unsigned long long)hash(model->m.arena + t[i].offset, t[i].bytes));
}

int main(void)
{
    size_t count;
    Model m = model_new(2);
    const M(_tensor) *t = M(_tensors)(&count);
    M(_reset)(&m.m, 1);
    for (size_t i = 0; i < count; i++)
        if (t[i].kind == INPUT)
            fill(&m, &t[i], i + 7, 2);
    check(M(_forward)(&m.m));
    print(&m, "forward", 1);
    float loss;
    check(M(_eval)(&m.m, &loss));
    printf("eval loss %016llx\n", (unsigned long long)hash(&loss, sizeof loss));
    for (int step = 0; step < STEPS; step++) {
        check(M(_step)(&m.m, &loss));
        printf("step %d loss %016llx\n", step, (unsigned long long)hash(&loss, sizeof loss));
    }
    print(&m, "trained", 0);
    free(m.arena);
    (void)tensor;
    (void)compare;
    return 0;
}
