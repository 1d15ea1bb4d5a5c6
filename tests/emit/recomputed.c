/* An output that was computed twice is read where it was computed last. */
#include "recomputed.h"
#include "expect.h"

int main(void)
{
    START(recomputed, m, RECOMPUTED_ARENA_BYTES);
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum += exp(0.1 * k);
    recomputed_reset(&m, 1);
    for (int i = 0; i < RECOMPUTED_X_COUNT; i++)
        recomputed_x(&m)[i] = 0.1f * (float)i;
    EXPECT(recomputed_forward(&m) == RECOMPUTED_OK);
    for (int i = 0; i < RECOMPUTED_MID_COUNT; i++)
        EXPECT_NEAR(recomputed_mid(&m)[i], exp(0.1 * (i % 4)) / sum);
    free(m_arena);
    FINISH();
}
