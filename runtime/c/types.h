/* The basic types of an emitted program. */
#ifndef GP_TYPES_H
#define GP_TYPES_H

#include <stdint.h>

#if defined(__CUDACC__) || defined(GP_CUDA_ON_CPU) /* the same text compiles for a device */
#include <cuda_runtime.h>
#define GP_CUDA
#endif

#ifndef GP_REAL
#define GP_REAL float
#endif
typedef GP_REAL gp_real;

/* How f16 and bf16 lie in memory: bits. Where gp_real is double, for differences, nothing is
 * narrow, and this is double too. */
#ifdef GP_HALF
#define GP_WIDE
#else
#define GP_HALF uint16_t
#endif
typedef GP_HALF gp_half;

#if defined(__GNUC__)
#define GP_UNUSED __attribute__((unused))
#define GP_NOINLINE __attribute__((noinline, unused))
#define GP_INLINE static inline __attribute__((always_inline, unused))
#else
#define GP_UNUSED
#define GP_NOINLINE
#define GP_INLINE static inline
#endif

/* Status of a kernel; the caller adds which op it was. */
enum {
    GP_OK = 0,
    GP_EINDEX = 1, /* an index out of range */
    GP_ENAN = 2,   /* a NaN in an output: see call.h */
#ifdef GP_CUDA
    GP_EDEVICE = 9, /* a device call failed */
#endif
#ifndef GP_NO_RANKS
    GP_ERANK = 14, /* another rank failed, or does not answer */
#endif
};

/* What is the same for a whole run of a program. */
typedef struct {
    uint64_t seed, step; /* step counts from 0 */
    int32_t threads;
#ifndef GP_ONE_BATCH       /* gplan knows a program without micro-batches */
    int32_t micro, micros; /* index and number of micro-batches; 0 of 0 without any */
#endif
#ifndef GP_NO_RANKS      /* likewise */
    int32_t part, parts; /* the same of all ranks together */
#endif
    int64_t batch, valid; /* samples of the whole batch, and how many are valid; 0: all */
    double lr;            /* learning rate of this step */
#ifndef GP_NO_DEVICE      /* gplan knows a program of C, and plans the bytes of one for CUDA */
    void *device;         /* what the target's kernels need in addition */
#endif
} gp_run;

/* The place in the batch, which random numbers and shares of a loss hang on. And that in the inputs
 * and outputs which are here: with --as-ranks those of all ranks. */
#ifdef GP_RANKS
#define GP_PART(run) ((run)->part)
#define GP_PARTS(run) ((run)->parts)
#else
#define GP_PART(run) ((run)->micro)
#define GP_PARTS(run) ((run)->micros)
#endif
#ifdef GP_AS_RANKS
#define GP_WINDOW(run) ((run)->part)
#else
#define GP_WINDOW(run) ((run)->micro)
#endif

#endif
