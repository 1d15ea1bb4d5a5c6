/* Two training steps and a forward pass; prints a sum of the bits of all that is left, so that a
 * build whose elementwise ops run behind products can be compared with one where none does. */
#include "tails.h"
#include "expect.h"

static void fill(tails *m)
{
    for (int i = 0; i < TAILS_X_COUNT; i++)
        tails_x(m)[i] = (float)(i * 7919 % 1009) / 1009 - 0.5f;
    for (int i = 0; i < TAILS_T_COUNT; i++)
        tails_t(m)[i] = (float)(i * 31 % 17) / 17;
    for (int i = 0; i < TAILS_SEEN_COUNT; i++)
        tails_seen(m)[i] = i % 3 != 0;
}

static uint32_t bits(const tails *m)
{
    uint32_t sum = 0;
    size_t count;
    const tails_tensor *t = tails_tensors(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < t[i].bytes; k++)
            sum = sum * 31 + m->arena[t[i].offset + k];
    return sum;
}

int main(int argc, char **argv)
{
    START(tails, m, TAILS_ARENA_BYTES)
    float loss[2] = {0, 0};
    tails_threads(&m, argc > 1 ? atoi(argv[1]) : 1);
    tails_reset(&m, 3);
    fill(&m);
    for (int i = 0; i < 2; i++)
        EXPECT(tails_step(&m, &loss[i]) == TAILS_OK && isfinite(loss[i]));
    EXPECT(loss[0] != loss[1]);
    EXPECT(tails_forward(&m) == TAILS_OK);
    printf("%08x\n", (unsigned)bits(&m));
    free(m_arena);
    return failures > 0;
}
