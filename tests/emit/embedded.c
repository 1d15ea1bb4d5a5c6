/* Runs the model with weights that were loaded or, with -DEMBEDDED, that lie in the C file, and
 * prints the bits of its output. -DSAVE: trains a little and writes the file. */
#ifdef SAVE
#include "saved.h"
#else
#include "embedded.h"
#endif
#include "expect.h"

static _Alignas(64) unsigned char arena[EMBEDDED_ARENA_BYTES];

static void fill(embedded *m)
{
    for (int i = 0; i < EMBEDDED_X_COUNT; i++)
        embedded_x(m)[i] = (float)(i % 13) / 7 - 1;
    for (int i = 0; i < EMBEDDED_WORD_COUNT; i++)
        embedded_word(m)[i] = 7 * i;
}

int main(void)
{
    embedded m;
    EXPECT(embedded_init(&m, arena, sizeof arena) == EMBEDDED_OK);
#ifdef SAVE
    embedded_reset(&m, 3);
    fill(&m);
    for (int i = 0; i < 3; i++)
        EXPECT(embedded_step(&m, NULL) == EMBEDDED_OK);
    EXPECT(embedded_save(&m, "embedded.safetensors") == EMBEDDED_OK);
#else
#ifndef EMBEDDED
    EXPECT(embedded_load(&m, "embedded.safetensors") == EMBEDDED_OK);
#endif
    fill(&m);
    EXPECT(embedded_forward(&m) == EMBEDDED_OK);
    for (int i = 0; i < EMBEDDED_PROBS_COUNT; i++)
        printf("%a\n", (double)embedded_probs(&m)[i]);
#endif
    return failures != 0;
}
