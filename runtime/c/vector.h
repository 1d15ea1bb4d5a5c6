/* Vectors of the compiler, as wide as the instruction set has them, and stores that pass by the
 * caches.
 *
 * A result much larger than the caches is gone from them before anybody reads it. Writing it the
 * usual way first reads each line that is to be overwritten, a third of all that moves; gp_stream
 * does not. */
#ifndef GP_VECTOR_H
#define GP_VECTOR_H

#include "base.h"

#if defined(__GNUC__)
#if defined(__AVX512F__)
#define GP_VECTOR_BYTES 64
#elif defined(__AVX__)
#define GP_VECTOR_BYTES 32
#else
#define GP_VECTOR_BYTES 16
#endif
#define GP_LANES (GP_VECTOR_BYTES / (int)sizeof(gp_real))
typedef gp_real gp_lanes
    __attribute__((vector_size(GP_VECTOR_BYTES), aligned(sizeof(gp_real)), may_alias));
#else
#define GP_VECTOR_BYTES 16
#define GP_LANES 4
#endif

/* One vector of floats to a place that is aligned to it. */
#if defined(__clang__)
#define GP_STREAM(to, x) __builtin_nontemporal_store(x, (gp_floats *)(to))
#elif defined(__GNUC__) && defined(__AVX512F__)
#define GP_STREAM(to, x) __builtin_ia32_movntps512((float *)(to), x)
#elif defined(__GNUC__) && defined(__AVX__)
#define GP_STREAM(to, x) __builtin_ia32_movntps256((float *)(to), x)
#elif defined(__GNUC__) && defined(__SSE2__)
#define GP_STREAM(to, x) __builtin_ia32_movntps((float *)(to), x)
#endif

#ifndef GP_STREAM_LEAST
#define GP_STREAM_LEAST (1 << 20) /* elements of a result that is stored so */
#endif

enum {
    GP_STREAM_PIECE = 128, /* elements that are made in one go before they are stored */
    GP_STREAM_AHEAD = 3072 /* how far beyond what is read next memory is asked for */
};

/* Whether a result of `count` elements is streamed: not one that is written over an operand, whose
 * lines are near. */
GP_FUNCTION int gp_streams(const void *to, const void *over, const void *other, int64_t count)
{
#if defined(GP_STREAM)
    return sizeof(gp_real) == sizeof(float) && count >= GP_STREAM_LEAST && to != over &&
           to != other;
#else
    (void)to, (void)over, (void)other, (void)count;
    return 0;
#endif
}

GP_FUNCTION int64_t gp_stream_piece(int64_t left)
{
    return left < GP_STREAM_PIECE ? left : GP_STREAM_PIECE;
}

/* Stores a piece, and on the way asks for what will be read next. */
GP_FUNCTION void gp_stream(gp_real *restrict to, const gp_real *restrict from, int64_t n,
                           const gp_real *next)
{
#if defined(GP_STREAM)
    typedef float gp_floats __attribute__((vector_size(GP_VECTOR_BYTES), may_alias));
    for (; n > 0 && (uintptr_t)to % GP_VECTOR_BYTES != 0; n--)
        *to++ = *from++;
    for (; n >= GP_LANES; n -= GP_LANES, to += GP_LANES, from += GP_LANES, next += GP_LANES) {
        gp_floats x;
        memcpy(&x, from, sizeof x);
        GP_STREAM(to, x);
        __builtin_prefetch(next);
        __builtin_prefetch(next + GP_STREAM_AHEAD, 0, 2);
    }
#endif
    (void)next;
    for (; n > 0; n--)
        *to++ = *from++;
}

/* Before another thread may read what was streamed. */
GP_FUNCTION void gp_stream_end(void)
{
#if defined(GP_STREAM) && defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}

#endif
