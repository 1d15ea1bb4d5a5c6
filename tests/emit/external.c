/* Inputs, outputs and parameters in the caller's memory. */
#include "external.h"
#include "expect.h"

static float param[12][64];

static void by_hand(const float *x, const float *y, float *z, float *last)
{
    for (int r = 0; r < 2; r++) {
        float h[8], next[8];
        memcpy(h, x + 8 * r, sizeof h);
        for (int layer = 0; layer < 6; layer++) {
            for (int j = 0; j < 8; j++) {
                float sum = param[2 * layer + 1][j];
                for (int k = 0; k < 8; k++)
                    sum += h[k] * param[2 * layer][k * 8 + j];
                next[j] = (sum > 0 ? sum : 0) + x[8 * r + j];
            }
            memcpy(h, next, sizeof h);
        }
        for (int j = 0; j < 8; j++) {
            z[8 * r + j] = h[j] * y[8 * r + j];
            last[16 * r + j] = h[j];
            last[16 * r + 8 + j] = y[8 * r + j];
        }
    }
}

int main(void)
{
    float x[16], y[16], z[16], again[16], last[32], want_z[16], want_last[32];
    START(external, m, EXTERNAL_ARENA_BYTES)
    for (int i = 0; i < 16; i++) {
        x[i] = (float)i / 8 - 1;
        y[i] = (float)(i % 3);
    }
    EXPECT(external_forward(&m) == EXTERNAL_EBIND);
    EXPECT_TEXT(external_error(&m), "x: no memory");
    external_bind_x(&m, x);
    external_bind_y(&m, y);
    external_bind_z(&m, z);
    external_bind_last(&m, last);
    external_bind_again(&m, again);
    EXPECT(external_forward(&m) == EXTERNAL_EBIND);
    size_t count;
    const external_tensor *t = external_tensors(&count);
    int next = 0;
    for (size_t i = 0; i < count; i++) {
        EXPECT(t[i].offset == EXTERNAL_EXTERNAL);
        if (t[i].kind == EXTERNAL_PARAM)
            EXPECT(external_bind(&m, t[i].name, param[next++]) == EXTERNAL_OK);
    }
    EXPECT(next == 12);
    EXPECT(external_bind(&m, "nobody", x) == EXTERNAL_ETENSOR);
    external_reset(&m, 5);
    EXPECT(external_forward(&m) == EXTERNAL_OK);
    by_hand(x, y, want_z, want_last);
    for (int i = 0; i < 16; i++)
        EXPECT_NEAR(z[i], want_z[i]);
    EXPECT(memcmp(z, again, sizeof z) == 0);
    for (int i = 0; i < 32; i++)
        EXPECT_NEAR(last[i], want_last[i]);
    EXPECT(external_save(&m, "external.safetensors") == EXTERNAL_OK);
    memset(param, 0, sizeof param);
    EXPECT(external_load(&m, "external.safetensors") == EXTERNAL_OK);
    EXPECT(external_forward(&m) == EXTERNAL_OK);
    EXPECT_NEAR(z[3], want_z[3]);
    free(m_arena);
    FINISH();
}
