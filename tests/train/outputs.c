/* Prints the bits of every output after forward, and the loss in a few digits: the same however the
 * batch is cut. An output is there after the runs that compute it, and no other. */
#include "emitted.h"

enum { OUTPUTS = 5, MOST = 4096 };

#ifdef CALLERS_MEMORY
static void bind_io(void)
{
    M(_bind_x)(&model, data(find("x")));
    M(_bind_labels)(&model, data(find("labels")));
    M(_bind_probs)(&model, data(find("probs")));
    M(_bind_turned)(&model, data(find("turned")));
    M(_bind_class)(&model, data(find("class")));
    M(_bind_still)(&model, data(find("still")));
    M(_bind_scaled)(&model, data(find("scaled")));
}

static const void *output(int i)
{
    static const char *const name[OUTPUTS] = {"probs", "turned", "class", "still", "scaled"};
    return data(find(name[i]));
}

static void clear(void)
{
    for (int i = 0; i < OUTPUTS; i++)
        memset((void *)(uintptr_t)output(i), 0xff, 4);
}
#else
static const void *output(int i)
{
    const void *const at[OUTPUTS] = {M(_probs)(&model), M(_turned)(&model), M(_class)(&model),
                                     M(_still)(&model), M(_scaled)(&model)};
    return at[i];
}

static void clear(void)
{
}

static void expect_none(const char *when)
{
    for (int i = 0; i < OUTPUTS; i++)
        check(output(i) == NULL, when);
}

/* An index outside its table, or a run that is stopped, leaves nothing. */
static int stop(void *user, uint64_t step, int op, int ops)
{
    (void)user, (void)step, (void)op, (void)ops;
    return 1;
}

static void expect_none_after_failures(void)
{
    float loss;
    int32_t *labels = M(_labels)(&model), kept = labels[1];
    labels[1] = 4;
    check(M(_eval)(&model, &loss) != 0, "a class that is none");
    expect_none("no output after an eval that failed");
    labels[1] = kept;
    expect_ok(M(_forward)(&model), "forward");
    check(output(0) != NULL, "there are outputs again");
    M(_progress)(&model, stop, NULL);
    check(M(_forward)(&model) != 0, "a run that is stopped");
    M(_progress)(&model, NULL, NULL);
    expect_none("no output after a run that was stopped");
}
#endif

int main(void)
{
    static const size_t bytes[OUTPUTS] = {8 * 4 * 4, 5 * 8 * 4, 8 * 4, 5 * 4, 8 * 3 * 5 * 4};
    static const char *const name[OUTPUTS] = {"probs", "turned", "class", "still", "scaled"};
    static uint32_t kept[OUTPUTS][MOST];
    float loss;
    model_begin(5);
#ifndef CALLERS_MEMORY
    expect_none("no output before any run");
#endif
    for (uint64_t turn = 0; turn < 2; turn++) {
        draw_inputs(turn + 1, 4);
        expect_ok(M(_step)(&model, &loss), "step"); /* outputs and step share bytes */
#ifndef CALLERS_MEMORY
        expect_none("no output after a step");
#endif
        M(_reset)(&model, 5);
        expect_ok(M(_forward)(&model), "forward");
        for (int i = 0; i < OUTPUTS; i++) {
            check(output(i) && find(name[i])->bytes == bytes[i], "every output after forward");
            memcpy(kept[i], output(i), bytes[i]);
            for (size_t k = 0; k < bytes[i] / 4; k++)
                printf("%s[%zu] = %08x\n", name[i], k, kept[i][k]);
        }
        clear();
        expect_ok(M(_eval)(&model, &loss), "eval");
        printf("loss %.5f\n", (double)loss);
        for (int i = 0; i < OUTPUTS; i++) {
            if (i == NOT_IN_EVAL)
                continue;
            check(output(i) != NULL, "outputs after eval");
            check(memcmp(kept[i], output(i), bytes[i]) == 0, "eval's outputs are forward's");
        }
    }
#ifndef CALLERS_MEMORY
    check(NOT_IN_EVAL < 0 || !output(NOT_IN_EVAL), "what eval does not compute");
    expect_none_after_failures();
#endif
    return 0;
}
