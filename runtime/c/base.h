/* The types and macros that kernels are written against.
 *
 * A kernel is `GP_KERNEL(name) { ... }` and sees its operands as tensors with dims and strides (in
 * elements), so one compiled kernel serves every shape. The real type is a macro: the gradient
 * tests compile the same kernels with double.
 *
 * Kernels allocate nothing and keep no state. The number of threads changes no bit of a result:
 * work is split into chunks by the shape alone, and a sum has one order. */
#ifndef GP_BASE_H
#define GP_BASE_H

#include "types.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* By default gcc vectorizes at half the width on processors whose clock drops with full vectors. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__) && !defined(GP_CUDA)
#pragma GCC target("prefer-vector-width=512")
#endif

/* Iterations are independent (also when an output is written over an operand). */
#if defined(GP_CUDA)
#define GP_IVDEP
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* where a loop stays scalar */
#define GP_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define GP_IVDEP _Pragma("GCC ivdep")
#else
#define GP_IVDEP
#endif

/* A block size, or a threshold between two code paths. Compiled with -DGP_TINY=1 it is the second
 * value, and every loop that can run in parallel does, so that small cases cross every boundary. */
#ifndef GP_TINY
#define GP_TINY 0
#endif
#define GP_BLOCK(usual, tiny) (GP_TINY ? (tiny) : (usual))

/* Before a for loop whose iterations are independent: `GP_PARALLEL(c->run, count > 4096)`. */
#define GP_PRAGMA(text) _Pragma(#text)
#if defined(_OPENMP) && !defined(GP_CUDA)
#define GP_PARALLEL(run, when) \
    GP_PRAGMA(omp parallel for schedule(static) num_threads((run)->threads) if ((when) || GP_TINY))
#else
#define GP_PARALLEL(run, when)
#endif

/* The index of this thread within a parallel loop: which part of the workspace it owns. */
#if defined(_OPENMP)
int omp_get_thread_num(void);
int omp_get_max_threads(void);
int omp_get_num_procs(void);
#define gp_thread() omp_get_thread_num()
#else
#define gp_thread() 0
#endif

#define GP_MAX_RANK 8

enum { GP_F32, GP_F16, GP_BF16, GP_I32, GP_I64, GP_U8, GP_BOOL, GP_I8, GP_U16, GP_U32, GP_F64 };

typedef struct {
    void *data; /* NULL: an optional operand that was not given */
    int32_t dtype, rank;
    int64_t dim[GP_MAX_RANK];
    int64_t stride[GP_MAX_RANK]; /* in elements; 0 where broadcast, negative where flipped */
} gp_tensor;

/* The epilogue: elementwise ops that run on elements of output 0 as soon as they are final, while
 * they are in cache. `at`: n contiguous elements; `first`: the row-major index of the first in the
 * output. Each element is passed exactly once. */
typedef void gp_epilogue(const void *args, gp_real *at, int64_t first, int64_t n);

typedef struct {
    const gp_tensor *in;  /* the row's operands in order */
    const gp_tensor *out; /* its outputs */
    int32_t ins, outs;    /* counts */
    void *work;           /* as many bytes as the kernel's GP_WORKSPACE says, 64-byte aligned */
    const void *attr;     /* gp_NAME_attr of the kernel: its settings */
    uint64_t key;         /* of random ops: a hash of the op's stable name */
    const gp_run *run;
    gp_epilogue *epilogue; /* NULL: none; only for kernels that support one */
    const void *epilogue_args;
    int32_t aside; /* what the output lies over is read by the epilogue: until that has run, sums
                      are kept in the workspace */
    int32_t half;  /* its reals are widened numbers of these 16 bits (gemm_half.h); GP_F32: not */
} gp_call;

/* GP_KERNEL(softmax) { ... return GP_OK; } sees `const gp_call *c`. */
#define GP_KERNEL(name) static GP_NOINLINE int gp_##name(const gp_call *c)

/* After a kernel for CUDA: it takes and makes f16 and bf16, as OP_HALF of its row says. */
#define GP_TAKES_HALF(name) enum { gp_##name##_takes_half = 1 };

/* GP_WORKSPACE(conv2d) { return bytes; } data pointers may be NULL here, dims are right. The
 * answer covers every instruction set that the emitted file may be compiled for. */
#define GP_WORKSPACE(name) static GP_UNUSED size_t gp_##name##_workspace(const gp_call *c)

/* `if (GP_WAY(name, condition))` is a branch that gplan leaves out where no call takes it.
 * GP_WAYS(conv2d) { gp_way(ways, "name", condition); } says which side a call takes, by dims,
 * strides and settings alone; both where it depends on the instruction set. */
#define GP_WAY(name, condition) (condition)
#define GP_WAYS(name) static inline GP_UNUSED void gp_##name##_ways(const gp_call *c, gp_ways *ways)

/* Functions that only the host calls, where speed does not matter, and functions that kernels call
 * too. */
#if defined(__GNUC__)
#define GP_HOST static __attribute__((cold, noinline, unused))
#else
#define GP_HOST static inline
#endif

#ifdef GP_CUDA
#define GP_FUNCTION __host__ __device__ static inline GP_UNUSED
#else
#define GP_FUNCTION static inline GP_UNUSED
#endif

/* Threads that a model starts with: those planned, at most the cores and OpenMP's limit. */
GP_HOST int gp_threads(int planned)
{
#if defined(_OPENMP)
    const int most = omp_get_max_threads(), cores = omp_get_num_procs();
    const int threads = most < cores ? most : cores;
    return threads < 1 ? 1 : threads < planned ? threads : planned;
#else
    (void)planned;
    return 1;
#endif
}

/* Which sides of named branches the calls take. */
enum { GP_TAKEN = 1, GP_PASSED = 2, GP_MAX_WAYS = 24 };
typedef struct {
    int count;
    struct {
        const char *name;
        int can;
    } at[GP_MAX_WAYS];
} gp_ways;

/* can: GP_TAKEN, GP_PASSED, both, or 0 where the call does not come that far. */
GP_FUNCTION void gp_way_can(gp_ways *ways, const char *name, int can)
{
    int i = 0;
    while (i < ways->count && strcmp(ways->at[i].name, name) != 0)
        i++;
    ways->count += i == ways->count;
    ways->at[i].name = name;
    ways->at[i].can |= can;
}

GP_FUNCTION void gp_way(gp_ways *ways, const char *name, int taken)
{
    gp_way_can(ways, name, taken ? GP_TAKEN : GP_PASSED);
}

/* Bytes of one element. */
GP_FUNCTION size_t gp_size(int32_t dtype)
{
#ifndef GP_NO_HALF
    if (dtype == GP_F16 || dtype == GP_BF16)
        return sizeof(gp_half);
#endif
    return dtype == GP_F32                      ? sizeof(gp_real)
           : dtype == GP_I64 || dtype == GP_F64 ? 8
           : dtype == GP_I32 || dtype == GP_U32 ? 4
           : dtype == GP_U16                    ? 2
                                                : 1;
}

/* Where the element lies that is `at` elements from the first. */
GP_FUNCTION void *gp_element(const gp_tensor *t, int64_t at)
{
    return (char *)t->data + at * (int64_t)gp_size(t->dtype);
}

GP_FUNCTION int64_t gp_count(const gp_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

/* Product of dims [from, to). */
GP_FUNCTION int64_t gp_span(const gp_tensor *t, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= t->dim[i];
    return n;
}

/* Element i of a contiguous tensor of indices: i32 or i64. */
GP_FUNCTION int64_t gp_index(const gp_tensor *t, int64_t i)
{
    return t->dtype == GP_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

#endif
