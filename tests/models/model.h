/* What the programs here share: an emitted model, its tensors by name, and a comparison.
 *
 * Compiled with -DMODEL=mlp -DARENA=MLP_ARENA_BYTES, the emitted header included first. Nothing of
 * gplan is used but what it emitted.
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN(a, b) a##b
#define PASTE(a, b) JOIN(a, b)
#define M(name) PASTE(MODEL, name) /* M(_init): mlp_init */

typedef struct {
    MODEL m;
    void *arena;
} Model;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *need(void *memory)
{
    if (!memory)
        fail("no memory");
    return memory;
}

/* Numbers from -1 to 1 that depend on the seed alone. */
static double next_random(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t x = *seed;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-52 - 1;
}

static size_t bytes_of(int dtype)
{
    static const size_t bytes[] = {4, 2, 2, 4, 8, 1, 1};
    return bytes[dtype];
}

/* Parameters get values that no layer can do without: biases are not 0, scales not 1. Inputs of
 * integers are from 0 to less than `classes`. */
static void fill(Model *model, const M(_tensor) * t, uint64_t seed, int classes)
{
    enum { F32 = 0, I32 = 3, I64 = 4 };
    unsigned char *at = model->m.arena + t->offset;
    size_t count = t->bytes / bytes_of(t->dtype);
    int64_t fan = t->rank > 1 ? (int64_t)count / t->dim[t->rank - 1] : 4;
    double spread = t->kind ? 1.5 / sqrt((double)(fan > 64 ? 64 : fan)) : 1;
    double offset = strstr(t->name, ".scale") || strstr(t->name, ".var") ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        double x = next_random(&seed);
        if (t->dtype == F32)
            ((float *)(void *)at)[i] = (float)(offset + x * spread);
        else if (t->dtype == I32)
            ((int32_t *)(void *)at)[i] = (int32_t)((x + 1) / 2 * classes);
        else if (t->dtype == I64)
            ((int64_t *)(void *)at)[i] = (int64_t)((x + 1) / 2 * classes);
        else
            at[i] = x > -0.5;
    }
}

static Model model_new(int classes)
{
    Model model;
    size_t count, bytes = 0;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++)
        if (t[i].offset + t[i].bytes > bytes)
            bytes = t[i].offset + t[i].bytes;
    size_t arena = ARENA;
    if (bytes > arena)
        fail("a tensor ends outside the arena");
    model.arena = need(aligned_alloc(64, (arena + 63) / 64 * 64));
    memset(model.arena, 0xff, arena);
    if (M(_init)(&model.m, model.arena, arena))
        fail("init");
    M(_reset)(&model.m, 1);
    for (size_t i = 0; i < count; i++)
        if (t[i].kind != 1) /* outputs are for the model to write */
            fill(&model, &t[i], i + 7, classes);
    return model;
}

/* A tensor in double; wrong where it has another count. */
static double *tensor(const Model *model, const char *name, size_t want)
{
    size_t count;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(t[i].name, name) != 0)
            continue;
        size_t n = t[i].bytes / bytes_of(t[i].dtype);
        if (n != want)
            fail(name);
        double *x = need(malloc(n * sizeof *x));
        const unsigned char *at = model->m.arena + t[i].offset;
        for (size_t k = 0; k < n; k++)
            x[k] = t[i].dtype == 0 ? ((const float *)(const void *)at)[k]
                                   : ((const int32_t *)(const void *)at)[k];
        return x;
    }
    fprintf(stderr, "no tensor %s\n", name);
    exit(1);
}

/* The largest difference, as a share of the largest number. */
static int compare(const Model *model, const char *name, const double *want, size_t n,
                   double tolerance)
{
    double *got = tensor(model, name, n), worst = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        double gap = fabs(got[i] - want[i]);
        worst = gap > worst || gap != gap ? gap : worst;
        most = fabs(want[i]) > most ? fabs(want[i]) : most;
    }
    free(got);
    printf("%s: %zu numbers up to %.3g, off by %.2g of that at most\n", name, n, most,
           worst / most);
    return worst <= tolerance * most && most > 0 ? 0 : 1;
}

#endif
