/* Two plans of one model in one program: one that trains four samples at once, and one that runs
 * them one after the other with what the first has saved. */
#include "fit.h"
#include "use.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = FIT_X_COUNT / USE_X_COUNT };

static void expect(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *arena_of(size_t bytes)
{
    void *arena = aligned_alloc(64, (bytes + 63) / 64 * 64);
    expect(arena != NULL, "no memory");
    return arena;
}

int main(void)
{
    fit trained;
    use used;
    float loss;
    void *large = arena_of(FIT_ARENA_BYTES), *small = arena_of(USE_ARENA_BYTES);
    expect(fit_sizeof() == sizeof trained && use_sizeof() == sizeof used, "sizeof");
    expect(fit_init(&trained, large, FIT_ARENA_BYTES) == FIT_OK, "init");
    expect(use_init(&used, small, USE_ARENA_BYTES) == USE_OK, "init");
    fit_reset(&trained, 5);
    for (int i = 0; i < FIT_X_COUNT; i++)
        fit_x(&trained)[i] = (float)(i % 7) / 7 - 0.4f;
    for (int i = 0; i < FIT_Y_COUNT; i++)
        fit_y(&trained)[i] = (float)(i % 5) / 5;
    for (int i = 0; i < 3; i++)
        expect(fit_step(&trained, &loss) == FIT_OK, fit_error(&trained));
    expect(fit_forward(&trained) == FIT_OK, "forward");
    expect(fit_save(&trained, "prefixes.safetensors") == FIT_OK, fit_error(&trained));
    expect(use_load(&used, "prefixes.safetensors") == USE_OK, use_error(&used));
    for (int i = 0; i < BATCH; i++) {
        memcpy(use_x(&used), fit_x(&trained) + i * USE_X_COUNT, USE_X_COUNT * sizeof(float));
        expect(use_forward(&used) == USE_OK, "forward");
        for (int k = 0; k < USE_H_COUNT; k++)
            expect(fabsf(use_h(&used)[k] - fit_h(&trained)[i * USE_H_COUNT + k]) < 1e-6f,
                   "the plans differ");
    }
    free(large);
    free(small);
    return 0;
}
