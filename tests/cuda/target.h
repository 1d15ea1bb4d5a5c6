/* An emitted model of either target, as the programs here see it. */
#ifndef TESTS_CUDA_TARGET_H
#define TESTS_CUDA_TARGET_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

#ifdef ON_DEVICE
#include <cuda_runtime.h>
#endif

#define JOIN(a, b) a##b
#define PASTE(a, b) JOIN(a, b)
#define M(name) PASTE(MODEL, name) /* M(_init): mlp_init */

#ifndef CLASSES
#define CLASSES 4
#endif

enum { KIND_INPUT, KIND_OUTPUT, KIND_PARAM, KIND_STATE };
enum { DTYPE_F32 = 0, DTYPE_I32 = 3 };

static MODEL model;
static void *arena;

static inline void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static inline void expect_ok(int code, const char *what)
{
    if (code == 0)
        return;
    fprintf(stderr, "failed: %s: %s; %s\n", what, M(_strerror)(code), M(_error)(&model));
    exit(1);
}

static inline std::vector<M(_tensor)> tensors()
{
    size_t count;
    const M(_tensor) *all = M(_tensors)(&count);
    return std::vector<M(_tensor)>(all, all + count);
}

#ifdef ON_DEVICE
static cudaStream_t stream;

/* The memory of the caller may go at once: it is waited for. */
static inline void put(const M(_tensor) & t, const void *from)
{
    expect(cudaMemcpyAsync(model.arena + t.offset, from, t.bytes, cudaMemcpyHostToDevice, stream) ==
                   cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess,
           "a copy to the device");
}

static inline void take(const M(_tensor) & t, void *to)
{
    expect(cudaMemcpyAsync(to, model.arena + t.offset, t.bytes, cudaMemcpyDeviceToHost, stream) ==
                   cudaSuccess &&
               cudaStreamSynchronize(stream) == cudaSuccess,
           "a copy from the device");
}

static inline void wait_for_all()
{
    expect_ok(M(_sync)(&model), "sync");
}

static inline int reset(uint64_t seed)
{
    return M(_reset)(&model, seed);
}

/* Of the arena not a byte more than the model asks for: after it lies a page that faults. The
 * stream is the default one where the model takes its memory itself, else one that waits for no
 * other. */
static inline void model_begin(bool created)
{
    expect(created || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess,
           "a stream");
    expect(created || cudaMalloc(&arena, ARENA) == cudaSuccess, "device memory");
    expect_ok(created ? M(_create)(&model, stream) : M(_init)(&model, arena, ARENA, stream),
              "init");
    expect_ok(reset(3), "reset");
}

static inline void model_end()
{
    M(_free)(&model);
    expect(cudaFree(arena) == cudaSuccess, "the arena is still the caller's");
    expect(!stream || cudaStreamDestroy(stream) == cudaSuccess, "the stream too");
}
#else
static inline void put(const M(_tensor) & t, const void *from)
{
    memcpy(model.arena + t.offset, from, t.bytes);
}

static inline void take(const M(_tensor) & t, void *to)
{
    memcpy(to, model.arena + t.offset, t.bytes);
}

static inline void wait_for_all()
{
}

static inline int reset(uint64_t seed)
{
    M(_reset)(&model, seed);
    return 0;
}

static inline void model_begin(bool)
{
    arena = aligned_alloc(64, (ARENA + 63) / 64 * 64);
    expect_ok(M(_init)(&model, arena, ARENA), "init");
    reset(3);
}

static inline void model_end()
{
    free(arena);
}
#endif

/* Every input: reals from -1 to 1, integers from 0 to less than CLASSES, by the seed alone. */
static inline void draw_inputs(uint64_t seed)
{
    for (const auto &t : tensors()) {
        if (t.kind != KIND_INPUT)
            continue;
        std::vector<unsigned char> bytes(t.bytes);
        for (size_t i = 0; i < t.bytes / 4; i++) {
            uint64_t x = (seed += 0x9e3779b97f4a7c15u);
            x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
            x = (x ^ x >> 27) * 0x94d049bb133111ebu;
            const double drawn = (double)((x ^ x >> 31) >> 11) * 0x1p-53;
            const float real = (float)(2 * drawn - 1);
            const int32_t whole = (int32_t)(drawn * CLASSES);
            if (t.dtype == DTYPE_F32)
                memcpy(&bytes[4 * i], &real, 4);
            else
                memcpy(&bytes[4 * i], &whole, 4);
        }
        put(t, bytes.data());
    }
}

#endif
