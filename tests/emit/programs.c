/* Steps, and the loss that eval has after them, to the last bit. */
#include "programs.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static programs m;
    float loss = 0;
    void *arena = aligned_alloc(64, (PROGRAMS_ARENA_BYTES + 63) / 64 * 64);
    if (programs_init(&m, arena, PROGRAMS_ARENA_BYTES) != PROGRAMS_OK)
        return 1;
    programs_reset(&m, 7);
    for (int i = 0; i < PROGRAMS_X_COUNT; i++)
        programs_x(&m)[i] = 0.1f * (float)(i % 7);
    for (int i = 0; i < PROGRAMS_Y_COUNT; i++)
        programs_y(&m)[i] = i % 4;
    for (int s = 0; s < 3; s++)
        if (programs_step(&m, &loss) == PROGRAMS_OK)
            printf("%a\n", (double)loss);
    if (programs_eval(&m, &loss) == PROGRAMS_OK)
        printf("%a\n", (double)loss);
    return 0;
}
