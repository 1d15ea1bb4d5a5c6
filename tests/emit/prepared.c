/* When the program prepare runs: after init, reset, load and a call of it, and at no other time. */
#include "prepared.h"
#include "expect.h"

enum { COUNT = PREPARED_Y_COUNT };

static int runs; /* ops of the last call */

static int count_ops(void *user, uint64_t step, int op, int ops)
{
    (void)user;
    (void)step;
    EXPECT(op == ++runs && ops >= op);
    return 0;
}

static int cancel(void *user, uint64_t step, int op, int ops)
{
    (void)user, (void)step, (void)op, (void)ops;
    return 1;
}

static float *gain(prepared *m)
{
    size_t count;
    const prepared_tensor *t = prepared_tensors(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(t[i].name, "gain") == 0)
            return (float *)(void *)(m->arena + t[i].offset);
    return NULL;
}

/* One call: how many ops it ran, and what it gave. */
static int forward(prepared *m, float *y)
{
    runs = 0;
    EXPECT(prepared_forward(m) == PREPARED_OK);
    memcpy(y, prepared_y(m), COUNT * sizeof *y);
    return runs;
}

static int same(const float *a, const float *b)
{
    return memcmp(a, b, COUNT * sizeof *a) == 0;
}

int main(void)
{
    float first[COUNT], again[COUNT], other[COUNT], back[COUNT];
    START(prepared, m, PREPARED_ARENA_BYTES)
    prepared_reset(&m, 3);
    for (int i = 0; i < PREPARED_X_COUNT; i++)
        prepared_x(&m)[i] = (float)(i % 7) - 2;
    EXPECT(prepared_save(&m, "prepared.safetensors") == PREPARED_OK);
    prepared_progress(&m, cancel, NULL);
    EXPECT(prepared_forward(&m) == PREPARED_ECANCEL); /* in prepare: it is still to be done */
    prepared_progress(&m, count_ops, NULL);
    const int both = forward(&m, first), alone = forward(&m, again);
    EXPECT(both > alone && both == PREPARED_OPS);
    EXPECT(same(first, again));

    gain(&m)[1] += 1; /* by hand: it has to be told */
    EXPECT(forward(&m, other) == alone && same(first, other));
    runs = 0;
    EXPECT(prepared_prepare(&m) == PREPARED_OK && runs == both - alone);
    EXPECT(forward(&m, other) == alone && !same(first, other));
    EXPECT_NEAR((double)other[1], exp(1) * (double)first[1]);

    EXPECT(prepared_load(&m, "prepared.safetensors") == PREPARED_OK);
    EXPECT(forward(&m, back) == both && same(first, back));
    prepared_reset(&m, 4);
    EXPECT(forward(&m, other) == both && !same(first, other));
    prepared_reset(&m, 3);
    EXPECT(forward(&m, back) == both && same(first, back));
    FINISH();
}
