/* Steps that overflow: scaled TO. Trains scaled.g under whatever plan, saves to TO. */
#include "emitted.h"

#include <math.h>

enum { SCALE, GOOD, SKIPPED, MOST_BYTES = 1 << 20 };

static float *state;     /* of the loss scale */
static unsigned char *x; /* a copy of all else that is saved */

static int is_saved(const M(_tensor) * t)
{
    return (t->kind == KIND_PARAM || t->kind == KIND_STATE) && data(t) != (void *)state;
}

/* Every byte of parameters and state, copied or compared; how many differ. */
static size_t differing(int copies, unsigned char *copy)
{
    size_t count, at = 0, differ = 0;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++) {
        if (!is_saved(&t[i]))
            continue;
        check(at + t[i].bytes <= MOST_BYTES, "room for a copy");
        const unsigned char *now = data(&t[i]);
        for (size_t k = 0; k < t[i].bytes && !copies; k++)
            differ += now[k] != copy[at + k];
        if (copies)
            memcpy(copy + at, now, t[i].bytes);
        at += t[i].bytes;
    }
    return differ;
}

static float step(void)
{
    float loss;
    expect_ok(M(_step)(&model, &loss), "step");
    return loss;
}

/* A step that overflows changes the loss scale and nothing else. */
static void skip(const char *why)
{
    const float scale = state[SCALE], skipped = state[SKIPPED];
    const uint64_t steps = model.step;
    differing(1, x);
    step();
    check(state[SKIPPED] == skipped + 1, why);
    check(state[SCALE] == scale / 2 && state[GOOD] == 0, "the scale is halved");
    check(differing(0, x) == 0, "every byte is as it was");
    check(model.step == steps + 1, "the step counts for data and schedule");
}

static void good(void)
{
    const float skipped = state[SKIPPED];
    differing(1, x);
    step();
    check(state[SKIPPED] == skipped && differing(0, x) > 0, "a good step moves parameters");
}

static void check_told(void)
{
    double scale;
    uint64_t skipped;
    expect_ok(M(_loss_scale)(&model, &scale, &skipped), "loss_scale");
    check(scale == (double)state[SCALE] && skipped == (uint64_t)state[SKIPPED], "they are told");
}

/* The first update after steps that were skipped is that of a run which began at that scale. */
static void check_recovery(void)
{
    unsigned char *first = malloc(MOST_BYTES);
    int skips = 0;
    state[SCALE] = ldexpf(1, 40);
    while (differing(1, x), step(), state[GOOD] == 0 && ++skips < 60)
        check(differing(0, x) == 0, "every byte is as it was");
    check(skips > 5 && skips < 60 && state[SCALE] == ldexpf(1, 40 - skips), "it recovers");
    check(state[SKIPPED] == (float)skips, "skipped steps are counted");
    differing(1, first);
    check_told();
    const float scale = state[SCALE];
    M(_reset)(&model, 3);
    state[SCALE] = scale;
    good();
    check(differing(0, first) == 0, "skipped steps leave no trace");
    free(first);
}

static void check_resumed(const char *path)
{
    unsigned char *end = malloc(MOST_BYTES);
    state[SKIPPED] = 5;
    state[GOOD] = 1997;
    expect_ok(M(_save)(&model, path), "save");
    for (int i = 0; i < 5; i++)
        step();
    differing(1, end);
    const float scale = state[SCALE], steps = state[GOOD];
    check(steps == 2, "the scale was doubled on the way");
    M(_reset)(&model, 4);
    expect_ok(M(_load)(&model, path), "load");
    check(state[SKIPPED] == 5 && state[GOOD] == 1997, "the loss scale is loaded");
    for (int i = 0; i < 5; i++)
        step();
    check(differing(0, end) == 0 && state[SCALE] == scale, "it goes on bit for bit");
    free(end);
}

int main(int argc, char **argv)
{
    check(argc == 2, "usage: scaled TO");
    x = malloc(MOST_BYTES);
    model_begin(3);
    state = data(find("train.loss_scale"));
    check(state[SCALE] == 65536 && state[GOOD] == 0 && state[SKIPPED] == 0, "it begins so");
    draw_inputs(1, 4);
    check_recovery();
    float *last = (float *)data(find("x")) + 8 * 10 - 1; /* of one micro-batch alone */
    const float kept = *last;
    *last = 1e6f;
    skip("an activation that overflows");
    *last = NAN;
    skip("a NaN that was an input");
    *last = kept;
    state[SCALE] = 1024;
    const float first = step();
    for (int i = 0; i < 60; i++)
        if (i == 20) {
            state[SCALE] = ldexpf(1, 60);
            skip("a forced overflow");
            state[SCALE] = 1024;
        } else {
            good();
        }
    state[GOOD] = 1999;
    const float loss = step();
    check(state[SCALE] == 2048 && state[GOOD] == 0, "2,000 good steps double the scale");
    check(loss < first / 2, "it learns");
    state[SCALE] = 1024;
    check_resumed(argv[1]);
    check_told();
    expect_ok(M(_save)(&model, argv[1]), "save");
    printf("loss %g, then %g\n", (double)first, (double)loss);
    return 0;
}
