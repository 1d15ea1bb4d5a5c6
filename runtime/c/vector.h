/* Vector types of the compiler, as wide as the instruction set has them, and non-temporal stores.
 *
 * A result much larger than the caches is evicted before anybody reads it. A plain store first
 * reads each line that it overwrites, a third of the memory traffic; gp_stream does not. */
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
typedef gp_real gp_four
    __attribute__((vector_size(4 * sizeof(gp_real)), aligned(sizeof(gp_real)), may_alias));
#else
#define GP_VECTOR_BYTES 16
#define GP_LANES 4
#endif

#if defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 12)
#define GP_SHUFFLES /* __builtin_shufflevector */
#endif

/* Stores one vector of floats to an aligned address. */
#if defined(__clang__)
#define GP_STREAM(to, x) __builtin_nontemporal_store(x, (gp_floats *)(to))
#elif defined(__GNUC__) && defined(__AVX512F__)
#define GP_STREAM(to, x) __builtin_ia32_movntps512((float *)(to), x)
#elif defined(__GNUC__) && defined(__AVX__)
#define GP_STREAM(to, x) __builtin_ia32_movntps256((float *)(to), x)
#elif defined(__GNUC__) && defined(__SSE2__)
#define GP_STREAM(to, x) __builtin_ia32_movntps((float *)(to), x)
#endif

#define GP_STREAM_LEAST GP_BLOCK(1 << 20, 64) /* the fewest elements that are streamed */
#ifndef GP_STREAM_FROM                        /* tests make it less */
#define GP_STREAM_FROM GP_STREAM_LEAST
#endif

enum {
    GP_STREAM_PIECE = GP_BLOCK(128, 32), /* elements computed before they are stored */
    GP_STREAM_AHEAD = 1536               /* prefetch distance beyond what is read next */
};

/* Whether a result of `count` elements is streamed: not one that is written over an operand, whose
 * lines are in cache. */
GP_FUNCTION int gp_streams(const void *to, const void *over, const void *other, int64_t count)
{
#if defined(GP_STREAM)
    return sizeof(gp_real) == sizeof(float) && count >= GP_STREAM_FROM && to != over && to != other;
#else
    (void)to, (void)over, (void)other, (void)count;
    return 0;
#endif
}

/* Both sides of a branch for a result that `may` be streamed, where the instruction set decides. */
GP_FUNCTION void gp_stream_ways(gp_ways *ways, const char *name, int may, int64_t count)
{
    gp_way(ways, name, 0);
    if (may && count >= GP_STREAM_LEAST)
        gp_way(ways, name, 1);
}

GP_FUNCTION int64_t gp_stream_piece(int64_t left)
{
    return left < GP_STREAM_PIECE ? left : GP_STREAM_PIECE;
}

/* Prefetches n elements that will be read next, and some that follow later. */
GP_FUNCTION void gp_stream_ask(const gp_real *next, int64_t n)
{
#if defined(__GNUC__)
    for (; n > 0; n -= GP_LANES, next += GP_LANES) {
        __builtin_prefetch(next);
        __builtin_prefetch(next + GP_STREAM_AHEAD, 0, 2);
    }
#endif
    (void)next, (void)n;
}

/* Stores a piece times `by`, and meanwhile prefetches what will be read next, unless that is
 * NULL. */
GP_FUNCTION void gp_stream_times(gp_real *restrict to, const gp_real *restrict from, gp_real by,
                                 int64_t n, const gp_real *next)
{
#if defined(GP_STREAM)
    typedef float gp_floats __attribute__((vector_size(GP_VECTOR_BYTES), may_alias));
    for (; n > 0 && (uintptr_t)to % GP_VECTOR_BYTES != 0; n--)
        *to++ = *from++ * by;
    for (; n >= GP_LANES; n -= GP_LANES, to += GP_LANES, from += GP_LANES) {
        gp_floats x;
        memcpy(&x, from, sizeof x);
        x *= (float)by;
        GP_STREAM(to, x);
        if (!next)
            continue;
        __builtin_prefetch(next);
        __builtin_prefetch(next + GP_STREAM_AHEAD, 0, 2);
        next += GP_LANES;
    }
#endif
    (void)next;
    for (; n > 0; n--)
        *to++ = *from++ * by;
}

GP_FUNCTION void gp_stream(gp_real *restrict to, const gp_real *restrict from, int64_t n,
                           const gp_real *next)
{
    gp_stream_times(to, from, 1, n, next);
}

/* A fence, before another thread may read what was streamed. */
GP_FUNCTION void gp_stream_end(void)
{
#if defined(GP_STREAM) && defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}

/* Shuffles of two vectors: every second element, shifts by one across both, and interleaving: lists
 * for __builtin_shufflevector. */
#define GP_EVENS_4 0, 2, 4, 6
#define GP_ODDS_4 1, 3, 5, 7
#if GP_VECTOR_BYTES == 64
#define GP_EVENS 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define GP_ODDS 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define GP_BEFORE 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
#define GP_AFTER 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
#define GP_LOW_PAIRS 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define GP_HIGH_PAIRS 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif GP_VECTOR_BYTES == 32
#define GP_EVENS 0, 2, 4, 6, 8, 10, 12, 14
#define GP_ODDS 1, 3, 5, 7, 9, 11, 13, 15
#define GP_BEFORE 7, 8, 9, 10, 11, 12, 13, 14
#define GP_AFTER 1, 2, 3, 4, 5, 6, 7, 8
#define GP_LOW_PAIRS 0, 8, 1, 9, 2, 10, 3, 11
#define GP_HIGH_PAIRS 4, 12, 5, 13, 6, 14, 7, 15
#else
#define GP_EVENS GP_EVENS_4
#define GP_ODDS GP_ODDS_4
#define GP_BEFORE 3, 4, 5, 6
#define GP_AFTER 1, 2, 3, 4
#define GP_LOW_PAIRS 0, 4, 1, 5
#define GP_HIGH_PAIRS 2, 6, 3, 7
#endif
enum { GP_ZIP_LANES = GP_VECTOR_BYTES / 4 }; /* as long as those lists */
#if defined(GP_SHUFFLES)
typedef gp_real gp_zip_lanes __attribute__((vector_size(GP_ZIP_LANES * sizeof(gp_real)),
                                            aligned(sizeof(gp_real)), may_alias));
#endif

/* Deinterleaves n pairs: even[i] = from[2 * i], odd[i] = from[2 * i + 1]. The last vector may
 * overlap the one before. */
GP_FUNCTION void gp_unzip(gp_real *restrict even, gp_real *restrict odd,
                          const gp_real *restrict from, int64_t n)
{
    int64_t i = 0;
#if defined(GP_SHUFFLES)
    for (; n >= GP_ZIP_LANES && i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        const gp_zip_lanes *pairs = (const gp_zip_lanes *)(from + 2 * at), a = pairs[0],
                           b = pairs[1];
        *(gp_zip_lanes *)(even + at) = __builtin_shufflevector(a, b, GP_EVENS);
        *(gp_zip_lanes *)(odd + at) = __builtin_shufflevector(a, b, GP_ODDS);
    }
#endif
    for (; i < n; i++) {
        even[i] = from[2 * i];
        odd[i] = from[2 * i + 1];
    }
}

/* Interleaves n pairs: to[2 * i] = even[i], to[2 * i + 1] = odd[i]. */
GP_FUNCTION void gp_zip(gp_real *restrict to, const gp_real *restrict even,
                        const gp_real *restrict odd, int64_t n)
{
    int64_t i = 0;
#if defined(GP_SHUFFLES)
    for (; n >= GP_ZIP_LANES && i < n; i += GP_ZIP_LANES) {
        const int64_t at = i + GP_ZIP_LANES <= n ? i : n - GP_ZIP_LANES;
        const gp_zip_lanes a = *(const gp_zip_lanes *)(even + at);
        const gp_zip_lanes b = *(const gp_zip_lanes *)(odd + at);
        gp_zip_lanes *pairs = (gp_zip_lanes *)(to + 2 * at);
        pairs[0] = __builtin_shufflevector(a, b, GP_LOW_PAIRS);
        pairs[1] = __builtin_shufflevector(a, b, GP_HIGH_PAIRS);
    }
#endif
    for (; i < n; i++) {
        to[2 * i] = even[i];
        to[2 * i + 1] = odd[i];
    }
}

#endif
