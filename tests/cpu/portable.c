/* Trains the model of portable.g for a few steps and compares what it says with a file, or writes
 * that file where it is not there yet. usage: portable FILE; the last line is how far off it was,
 * in words. Programs of other instruction sets round differently: 1e-3 is granted. */
#include "portable.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 4, NUMBERS = STEPS + PORTABLE_PROBS_COUNT };

static void run(portable *m, float *number)
{
    portable_reset(m, 7);
    for (int i = 0; i < PORTABLE_IMAGES_COUNT; i++)
        portable_images(m)[i] = (float)(i * 7919 % 1009) / 1009;
    for (int i = 0; i < PORTABLE_LABELS_COUNT; i++)
        portable_labels(m)[i] = i * 3 % 10;
    for (int i = 0; i < STEPS; i++)
        if (portable_step(m, &number[i]) != 0)
            exit(1);
    if (portable_forward(m) != 0)
        exit(1);
    for (int i = 0; i < PORTABLE_PROBS_COUNT; i++)
        number[STEPS + i] = portable_probs(m)[i];
}

int main(int argc, char **argv)
{
    static portable m;
    float number[NUMBERS], want[NUMBERS];
    void *arena = aligned_alloc(PORTABLE_ARENA_ALIGN, (PORTABLE_ARENA_BYTES + 63) / 64 * 64);
    if (argc < 2 || !arena || portable_init(&m, arena, PORTABLE_ARENA_BYTES) != 0)
        return 2;
    run(&m, number);
    free(arena);
    FILE *file = fopen(argv[1], "rb");
    if (!file) {
        file = fopen(argv[1], "wb");
        if (!file || fwrite(number, sizeof number, 1, file) != 1)
            return 2;
    } else if (fread(want, sizeof want, 1, file) == 1) {
        for (int i = 0; i < NUMBERS; i++)
            if (!(fabsf(number[i] - want[i]) <= 1e-3f * (1 + fabsf(want[i])))) {
                printf("number %d is %g and not %g\n", i, (double)number[i], (double)want[i]);
                return 1;
            }
    }
    fclose(file);
    puts("as elsewhere");
    return 0;
}
