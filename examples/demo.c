/* Trains the emitted lenet on digits that are drawn here, and measures speed and memory. */
#include "lenet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, SECONDS = 5 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double resident_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* ---- Digits --------------------------------------------------------------------------------- */

static int below(int limit) /* a number from 0 to less than limit */
{
    static unsigned state = 1;
    state = state * 1103515245u + 12345u;
    return (int)((state >> 16) % (unsigned)limit);
}

static void draw_bar(float *image, int x, int y, int width, int height)
{
    for (int row = y; row < y + height; row++)
        for (int column = x; column < x + width; column++)
            image[row * SIDE + column] = 1 - (float)below(300) / 1000;
}

/* Seven bars, as on a pocket calculator: anywhere in the picture, in any size, in noise. */
static void draw_digit(float *image, int digit)
{
    static const unsigned char bars[10] = {0x77, 0x12, 0x5d, 0x5b, 0x3a,
                                           0x6b, 0x6f, 0x52, 0x7f, 0x7b};
    int width = 7 + below(5), half = 7 + below(3), thick = 2 + below(2);
    int x = 1 + below(SIDE - width - thick - 1), y = 1 + below(SIDE - 2 * half - thick - 1);
    for (int i = 0; i < PIXELS; i++)
        image[i] = (float)below(300) / 1000;
    for (int bar = 0; bar < 7; bar++) {
        static const char place[7][2] = {{0, 0}, {0, 0}, {1, 0}, {0, 1}, {0, 1}, {1, 1}, {0, 2}};
        int across = bar == 0 || bar == 3 || bar == 6;
        if (bars[digit] >> (6 - bar) & 1)
            draw_bar(image, x + place[bar][0] * width, y + place[bar][1] * half,
                     across ? width + thick : thick, across ? thick : half + thick);
    }
}

static void draw_batch(lenet *m)
{
    for (int i = 0; i < LENET_LABELS_COUNT; i++) {
        lenet_labels(m)[i] = below(10);
        draw_digit(lenet_images(m) + i * PIXELS, lenet_labels(m)[i]);
    }
}

/* ---- Training ------------------------------------------------------------------------------- */

static void show(const lenet *m, float loss, double seconds)
{
    int terminal = isatty(STDOUT_FILENO);
    printf("%sstep %4llu   loss %.4f   %6.0f samples/s%s", terminal ? "\r" : "",
           (unsigned long long)m->step, (double)loss,
           (double)m->step * LENET_LABELS_COUNT / seconds, terminal ? "" : "\n");
    fflush(stdout);
}

/* For so many seconds, with a line that shows how far it is; an error code. */
static int train(lenet *m)
{
    double start = now(), shown = start;
    for (;;) {
        float loss;
        draw_batch(m);
        int code = lenet_step(m, &loss);
        double time = now();
        if (code || time - start > SECONDS) {
            if (!code)
                show(m, loss, time - start);
            printf(isatty(STDOUT_FILENO) ? "\n" : "");
            return code;
        }
        if (time - shown > (isatty(STDOUT_FILENO) ? 0.1 : 1)) {
            show(m, loss, time - start);
            shown = time;
        }
    }
}

static int count_right(const lenet *m, const int32_t *labels)
{
    int right = 0;
    for (int i = 0; i < LENET_LABELS_COUNT; i++) {
        const float *probs = lenet_probs(m) + 10 * i;
        int best = 0;
        for (int k = 1; k < 10; k++)
            best = probs[k] > probs[best] ? k : best;
        right += best == labels[i];
    }
    return right;
}

int main(int argc, char **argv)
{
    lenet m;
    void *arena = aligned_alloc(LENET_ARENA_ALIGN, LENET_ARENA_BYTES);
    int code = arena ? lenet_init(&m, arena, LENET_ARENA_BYTES) : LENET_EARENA;
    if (!code) {
        lenet_reset(&m, 1);
        code = train(&m);
    }
    if (!code) {
        draw_batch(&m);
        code = lenet_forward(&m);
    }
    if (code) {
        fprintf(stderr, "demo: %s\n", lenet_strerror(code));
        return 1;
    }
    printf("digits it has not seen: %d of %d right\n", count_right(&m, lenet_labels(&m)),
           LENET_LABELS_COUNT);
    printf("budget %s: the arena takes %.2f MiB, the whole process %.2f MiB at its peak\n",
           argc > 1 ? argv[1] : "none", LENET_ARENA_BYTES / 1048576.0, resident_mib());
    free(arena);
    return 0;
}
