/* Loops that store past the caches write every element, and nothing else. */
#include "streams.h"
#include "expect.h"

static float number(int i)
{
    return (float)(i % 1009 - 500) / 8;
}

static void fill(float *to, int count, int first)
{
    for (int i = 0; i < count; i++)
        to[i] = number(first + i);
}

int main(void)
{
    int wrong[3] = {0};
    START(streams, m, STREAMS_ARENA_BYTES)
    fill(streams_x(&m), STREAMS_X_COUNT, 1);
    fill(streams_rows(&m), STREAMS_ROWS_COUNT, 2);
    fill(streams_bias(&m), STREAMS_BIAS_COUNT, 3);
    fill(streams_odd(&m), STREAMS_ODD_COUNT, 4);
    fill(streams_shift(&m), STREAMS_SHIFT_COUNT, 5);
    EXPECT(streams_forward(&m) == STREAMS_OK);
    for (int i = 0; i < STREAMS_ONE_COUNT; i++) {
        wrong[0] += streams_one(&m)[i] != 2 * number(1 + i) + 1;
        wrong[2] += streams_three(&m)[i] != number(1 + i) - number(4 + i % 1031);
    }
    for (int i = 0; i < STREAMS_TWO_COUNT; i++) {
        const float sum = number(2 + i) + number(3 + i % 1040);
        wrong[1] += streams_two(&m)[i] != (sum > 0 ? sum : 0) * number(5 + i / (544 * 1040));
    }
    EXPECT(wrong[0] == 0 && wrong[1] == 0 && wrong[2] == 0);
    free(m_arena);
    FINISH();
}
