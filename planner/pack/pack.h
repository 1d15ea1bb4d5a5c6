/* Packing of buffers into one arena: an offset for every interval of time, no two that are
 * alive together sharing a byte, the arena as small as can be found.
 *
 * The packer knows nothing of graphs or programs; it needs libgplan.a and this header only.
 *
 *     PackBuffer buffer[] = {{.lower = 0, .upper = 3, .size = 64, .fixed = PACK_FREE}, ...};
 *     uint64_t offset[2];
 *     PackProblem problem = {.buffer = buffer, .count = 2};
 *     PackSolution solution = {.offset = offset};
 *     if (pack_solve(&problem, NULL, &solution) == PACK_OK)
 *         ... offset[i] holds, the arena needs solution.height bytes ...
 *
 * The same problem and options give the same solution on every machine, unless `seconds` cut
 * the search. Nothing is kept between calls; calls from several threads do not meet.
 */
#ifndef GPLAN_PACK_H
#define GPLAN_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PACK_FREE (-1)                     /* PackBuffer.fixed: the packer chooses the offset */
#define PACK_MAX_BYTES ((uint64_t)1 << 62) /* no size, alignment or height may be larger */

/* Alive in [lower, upper): two buffers may share bytes when one's upper is the other's lower.
 * A buffer of size 0 gets an offset too and overlaps nothing. */
typedef struct PackBuffer {
    int64_t lower, upper; /* lower < upper */
    uint64_t size;
    uint64_t align; /* the offset is a multiple of it; any positive number, 0 means 1 */
    int64_t fixed;  /* the offset it must have, or PACK_FREE */
} PackBuffer;

typedef struct PackProblem {
    const PackBuffer *buffer;
    size_t count;      /* below 2^31 */
    uint64_t capacity; /* stop at a packing of at most so many bytes; 0: as small as possible */
} PackProblem;

/* Parts of the portfolio, to be switched off one by one. */
enum {
    PACK_NO_FIT = 1 << 0,     /* best fit and first fit over several orders */
    PACK_NO_SWEEP = 1 << 1,   /* first fit along time, outwards from the peak */
    PACK_NO_SQUEAK = 1 << 2,  /* local search over orders */
    PACK_NO_SEARCH = 1 << 3,  /* the complete search */
    PACK_NO_BISECT = 1 << 4,  /* capacities between the bound and the best known height */
    PACK_NO_RESTART = 1 << 5, /* the complete search runs once, to its end */
    PACK_NO_WEIGHT = 1 << 6,  /* it does not learn which sections refute */
    PACK_NO_NOISE = 1 << 7,   /* its orders are not shaken */
    PACK_NO_SPLIT = 1 << 8,   /* it does not split where buffers fall apart */
};

/* Effort is counted in steps of the inner loops, some hundred million a second. */
#define PACK_EFFORT_CHEAP ((uint64_t)1000 * 1000)          /* for callers that pack often */
#define PACK_EFFORT_DEFAULT ((uint64_t)1000 * 1000 * 1000) /* a few seconds when it is hard */

typedef struct PackOptions {
    uint64_t effort; /* 0: PACK_EFFORT_DEFAULT */
    double seconds;  /* a cap on top of it; 0: none */
    uint64_t seed;
    unsigned skip; /* of PACK_NO_... */
} PackOptions;

typedef enum PackStatus {
    PACK_OK,         /* packed, within the capacity where one was given */
    PACK_INFEASIBLE, /* proved: no packing has the capacity; the offsets hold a larger one */
    PACK_NOT_FOUND,  /* the effort ended before the capacity was reached; likewise */
    PACK_INVALID,    /* the problem is wrong: see solution.bad and solution.why */
} PackStatus;

typedef enum PackStop {
    PACK_STOP_BOUND,    /* the height equals the lower bound */
    PACK_STOP_CAPACITY, /* the capacity was reached */
    PACK_STOP_PROVED,   /* the search is complete */
    PACK_STOP_EFFORT,   /* the counted effort was used up */
    PACK_STOP_SECONDS,  /* the clock cut it: another run may differ */
    PACK_STOP_INVALID,
} PackStop;

typedef struct PackSolution {
    uint64_t *offset; /* in: the caller's array of `count`; out: a valid packing */
    uint64_t height;  /* bytes the arena needs */
    uint64_t bound;   /* no packing is smaller */
    bool optimal;     /* height == bound */
    PackStop stop;
    uint64_t effort; /* used: give it as `effort` to repeat a run that the clock cut */
    size_t bad;      /* PACK_INVALID: the buffer at fault */
    const char *why; /* PACK_INVALID: a short text, never to be freed */
} PackSolution;

/* options may be NULL. Memory is freed before it returns. */
PackStatus pack_solve(const PackProblem *problem, const PackOptions *options,
                      PackSolution *solution);

/* The largest load at any time and what follows from it: a height no packing can go below. Near
 * linear in the count, so it is cheap; 0 for a problem that is invalid. */
uint64_t pack_bound(const PackProblem *problem);

const char *pack_stop_name(PackStop stop); /* "lower bound met", ... */

/* What a packing breaks, found by code that shares nothing with the solver. */
typedef enum PackFault {
    PACK_FAULT_NONE,
    PACK_FAULT_OVERLAP,  /* first and second share a byte at some time */
    PACK_FAULT_ALIGN,    /* first is not aligned */
    PACK_FAULT_FIXED,    /* first is not where it must be */
    PACK_FAULT_CAPACITY, /* first ends above the capacity */
    PACK_FAULT_HEIGHT,   /* the height stated is not the highest end */
    PACK_FAULT_BOUND,    /* the height is below the stated bound */
} PackFault;

typedef struct PackVerdict {
    PackFault fault;
    size_t first, second; /* buffers involved */
} PackVerdict;

/* Checks offsets and height against the problem; capacity too, where it is not 0. */
PackVerdict pack_check(const PackProblem *problem, const PackSolution *solution);
const char *pack_fault_name(PackFault fault);

#ifdef __cplusplus
}
#endif

#endif
