/* Gradients in 16 bits beside those in f32: narrow BOUND. A model emitted twice, as wide and as
 * half, both with sgd(lr = 1.0), so that a step moves parameters by their gradients. The norm of
 * all differences is at most BOUND of that of all gradients; prints its share, and the worst
 * tensor's. */
#include "half.h"
#include "wide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wide one;
static half other;

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static void *room(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    check(at != NULL, "memory");
    return at;
}

static const half_tensor *find(const char *name)
{
    size_t count;
    const half_tensor *t = half_tensors(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    check(0, name);
    return NULL;
}

/* The same numbers for both: reals from -1 to 1, classes. */
static void draw(const wide_tensor *t, uint64_t seed)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < t->bytes / 4; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (t->dtype == WIDE_F32)
            ((float *)(void *)(one.arena + t->offset))[i] = (float)(x >> 40) * 0x1p-23f - 1;
        else
            ((int32_t *)(void *)(one.arena + t->offset))[i] = (int32_t)(x % 4);
    }
}

static int is_as_it_began(const wide_tensor *t, size_t count, float *const *begin)
{
    for (size_t i = 0; i < count; i++)
        if (t[i].kind == WIDE_PARAM &&
            memcmp(other.arena + find(t[i].name)->offset, begin[i], t[i].bytes) != 0)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    size_t count;
    float a = 0, b = 0;
    check(argc == 2, "usage: narrow BOUND");
    check(!wide_init(&one, room(WIDE_ARENA_BYTES), WIDE_ARENA_BYTES), "init");
    check(!half_init(&other, room(HALF_ARENA_BYTES), HALF_ARENA_BYTES), "init");
    wide_reset(&one, 3);
    half_reset(&other, 3);
    const wide_tensor *t = wide_tensors(&count);
    float **begin = room(count * sizeof *begin);
    for (size_t i = 0; i < count; i++) {
        begin[i] = room(t[i].bytes + 64);
        if (t[i].kind == WIDE_INPUT)
            draw(&t[i], i);
        memcpy(begin[i], one.arena + t[i].offset, t[i].bytes);
        if (t[i].kind == WIDE_INPUT)
            memcpy(other.arena + find(t[i].name)->offset, begin[i], t[i].bytes);
        if (t[i].kind == WIDE_PARAM)
            check(!memcmp(other.arena + find(t[i].name)->offset, begin[i], t[i].bytes), t[i].name);
    }
    check(!wide_step(&one, &a), "step");
    for (int i = 0; i < 20 && is_as_it_began(t, count, begin); i++) /* until the loss scale fits */
        check(!half_step(&other, &b), "step");
    double all = 0, apart = 0, worst = 0;
    const char *name = "";
    for (size_t i = 0; i < count; i++) {
        if (t[i].kind != WIDE_PARAM)
            continue;
        const float *w = (const float *)(void *)(one.arena + t[i].offset);
        const float *h = (const float *)(void *)(other.arena + find(t[i].name)->offset);
        double norm = 0, differs = 0;
        for (size_t k = 0; k < t[i].bytes / 4; k++) {
            norm += pow((double)w[k] - (double)begin[i][k], 2);
            differs += pow((double)w[k] - (double)h[k], 2);
        }
        all += norm;
        apart += differs;
        if (norm > 0 && differs / norm > worst) {
            worst = differs / norm;
            name = t[i].name;
        }
    }
    const double share = sqrt(apart / all), bound = strtod(argv[1], NULL);
    printf("gradients %.3g%% apart, worst %s %.3g%%; loss %.6g, %.6g\n", 100 * share, name,
           100 * sqrt(worst), (double)a, (double)b);
    check(share > 1e-6, "they are narrow");
    check(share <= bound, "within the bound");
    return 0;
}
