/* Learns to spell: a decoder over the characters of a text, chars FILE. */
#include "emitted.h"

enum { BATCH = 16, TIME = 48, STEPS = 400 };
static char text[1 << 16];
static size_t length;

static void draw_text(uint64_t seed)
{
    for (int b = 0; b < BATCH; b++) {
        size_t from = (size_t)(drawn(&seed) * (double)(length - TIME - 1));
        for (int t = 0; t < TIME; t++) {
            chars_tokens(&model)[b * TIME + t] = text[from + (size_t)t] & 127;
            chars_next(&model)[b * TIME + t] = text[from + (size_t)t + 1] & 127;
        }
    }
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    check(file != NULL, "usage: chars FILE");
    length = fread(text, 1, sizeof text, file);
    fclose(file);
    float loss = 0, first = 0;
    double last = 0;
    model_begin(1);
    for (int step = 0; step < STEPS; step++) {
        draw_text((uint64_t)step + 1);
        expect_ok(chars_step(&model, &loss), "step");
        first = step ? first : loss;
        last += step >= STEPS - 20 ? (double)loss / 20 : 0;
    }
    printf("characters: loss %.3f -> %.3f in %d steps on %zu characters\n", (double)first, last,
           STEPS, length);
    check(last < 1.0, "the loss falls below 1.0");
    return 0;
}
