/* Each dtype as C means it, and casts that C leaves undefined. */
#include "dtypes.h"
#include "expect.h"

int main(void)
{
    static const float odd[] = {0.0f, -0.0f, 1.5f, -3e30f, 3e30f, 0.29999998f, 1e-30f};
    START(dtypes, m, DTYPES_ARENA_BYTES)
    dtypes_reset(&m, 0);
    for (int k = 0; k < 15; k++) {
        dtypes_f(&m)[k] = odd[k % 7];
        dtypes_i(&m)[k] = k - 4;
        dtypes_n(&m)[k] = (int64_t)k << 40;
    }
    dtypes_f(&m)[14] = NAN;
    for (int k = 0; k < 3; k++)
        dtypes_g(&m)[k] = (float)k - 1;
    EXPECT(dtypes_forward(&m) == DTYPES_OK);
    for (int k = 0; k < 14; k++) {
        float f = dtypes_f(&m)[k], g = dtypes_g(&m)[k % 3];
        float clipped = f < -0.1f ? -0.1f : f > 0.3f ? 0.3f : f;
        EXPECT_NEAR(dtypes_mixed(&m)[k], (f > g ? f * 2 : -0.5f * g) + clipped);
        EXPECT(dtypes_whole(&m)[k] == (k - 4) * 3 - 7);
        EXPECT(dtypes_long(&m)[k] == (int64_t)k << 41);
        EXPECT(dtypes_sign(&m)[k] == (f > 0 && !(k - 4 > 2)));
        double big = f * 1e12f;
        int32_t cut = big >= 2147483647.0    ? 2147483647
                      : big <= -2147483648.0 ? -2147483647 - 1
                                             : (int32_t)big;
        EXPECT(dtypes_cut(&m)[k] == cut);
        EXPECT(dtypes_number(&m)[k] == (float)(k - 4) / 4);
        EXPECT(dtypes_flag(&m)[k] == (f != 0));
        float square = (fabsf(f) + 1) * (fabsf(f) + 1);
        EXPECT(isinf(square) ? isinf(dtypes_power(&m)[k])
                             : fabsf(dtypes_power(&m)[k] / square - 1) < 1e-6f);
    }
    EXPECT(dtypes_cut(&m)[14] == 0 && dtypes_flag(&m)[14] == 1 && dtypes_sign(&m)[14] == 0);
    free(m_arena);
    FINISH();
}
