/* An emitted model under whatever name: compiled with -DMODEL=mlp -DARENA=MLP_ARENA_BYTES, its
 * header included first. */
#ifndef TESTS_EMITTED_H
#define TESTS_EMITTED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN(a, b) a##b
#define PASTE(a, b) JOIN(a, b)
#define M(name) PASTE(MODEL, name) /* M(_init): mlp_init */

enum { KIND_INPUT, KIND_OUTPUT, KIND_PARAM, KIND_STATE };
enum { DTYPE_F32 = 0, DTYPE_I32 = 3 };

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static MODEL model;

static void expect_ok(int code, const char *what)
{
    if (code) {
        fprintf(stderr, "failed: %s: %s; %s\n", what, M(_strerror)(code), M(_error)(&model));
        exit(1);
    }
}

#ifdef CALLERS_MEMORY
/* Where inputs, outputs and parameters are the caller's memory; the program binds inputs and
 * outputs, each by its own function. */
static void *memory[256];
static void bind_io(void);

static void bind_all(void)
{
    size_t count;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++) {
        check(i < 256 && t[i].offset == (size_t)-1, "all tensors are the caller's");
        memory[i] = calloc(1, t[i].bytes);
        if (t[i].kind == KIND_PARAM || t[i].kind == KIND_STATE)
            expect_ok(M(_bind)(&model, t[i].name, memory[i]), "bind");
    }
    bind_io();
}
#endif

static void model_begin(uint64_t seed)
{
    void *arena = aligned_alloc(64, (ARENA + 63) / 64 * 64);
    check(arena != NULL, "memory for the arena");
    expect_ok(M(_init)(&model, arena, ARENA), "init");
#ifdef CALLERS_MEMORY
    bind_all();
#endif
    M(_reset)(&model, seed);
}

static const M(_tensor) * find(const char *name)
{
    size_t count;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    fprintf(stderr, "failed: no tensor %s\n", name);
    exit(1);
}

static void *data(const M(_tensor) * t)
{
#ifdef CALLERS_MEMORY
    size_t count;
    return memory[t - M(_tensors)(&count)];
#else
    return model.arena + t->offset;
#endif
}

static const float *floats(const char *name)
{
    return data(find(name));
}

static const int32_t *ints(const char *name)
{
    return data(find(name));
}

/* From 0 to less than 1, by the seed alone. */
static double drawn(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* Every input: reals from -1 to 1, integers from 0 to less than `classes`. */
static void draw_inputs(uint64_t seed, int classes)
{
    size_t count;
    const M(_tensor) *t = M(_tensors)(&count);
    for (size_t i = 0; i < count; i++) {
        uint64_t state = seed * 1000 + i;
        for (size_t k = 0; t[i].kind == KIND_INPUT && k < t[i].bytes / 4; k++)
            if (t[i].dtype == DTYPE_F32)
                ((float *)data(&t[i]))[k] = (float)(2 * drawn(&state) - 1);
            else
                ((int32_t *)data(&t[i]))[k] = (int32_t)(drawn(&state) * classes);
    }
}

#endif
