/* Two training steps and a forward pass; prints a sum of the bits of all that is left, so that a
 * build whose elementwise ops run as epilogues of products can be compared with one where none
 * does. */
#include "epilogues.h"
#include "expect.h"

static void fill(epilogues *m)
{
    for (int i = 0; i < EPILOGUES_X_COUNT; i++)
        epilogues_x(m)[i] = (float)(i * 7919 % 1009) / 1009 - 0.5f;
    for (int i = 0; i < EPILOGUES_T_COUNT; i++)
        epilogues_t(m)[i] = (float)(i * 31 % 17) / 17;
    for (int i = 0; i < EPILOGUES_SEEN_COUNT; i++)
        epilogues_seen(m)[i] = i % 3 != 0;
}

static uint32_t bits(const epilogues *m)
{
    uint32_t sum = 0;
    size_t count;
    const epilogues_tensor *t = epilogues_tensors(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < t[i].bytes; k++)
            sum = sum * 31 + m->arena[t[i].offset + k];
    return sum;
}

int main(int argc, char **argv)
{
    START(epilogues, m, EPILOGUES_ARENA_BYTES)
    float loss[2] = {0, 0};
    epilogues_threads(&m, argc > 1 ? atoi(argv[1]) : 1);
    epilogues_reset(&m, 3);
    fill(&m);
    for (int i = 0; i < 2; i++)
        EXPECT(epilogues_step(&m, &loss[i]) == EPILOGUES_OK && isfinite(loss[i]));
    EXPECT(loss[0] != loss[1]);
    EXPECT(epilogues_forward(&m) == EPILOGUES_OK);
    printf("%08x\n", (unsigned)bits(&m));
    free(m_arena);
    return failures > 0;
}
