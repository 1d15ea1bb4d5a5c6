/* Where the buffers of a plan lie, for the checker. */
#ifndef GPLAN_CHECK_EXTENTS_H
#define GPLAN_CHECK_EXTENTS_H

#include "planner/planner.h"

typedef struct {
    const Plan *plan;
    uint64_t *base; /* by buffer: where it begins. The caller's memory follows the arena, each
                       block of it apart from the others. */
} Extents;

/* Finds them. What is wrong with a single buffer, or NULL: it has the dims of its value, is
 * within its root and the arena, is aligned, and no two of its elements share bytes. */
const char *extents_find(Extents *extents, const Plan *plan, const Target *target, Arena *arena);

/* Bytes from the first to past the last element. */
void extents_of(const Extents *extents, Id buffer, uint64_t *begin, uint64_t *end);
/* Is there a byte of both? */
bool extents_overlap(const Extents *extents, Id first, Id second);
/* The bytes of a buffer with gaps in each of its periods, in bytes: a step along its innermost axis
 * that leaves gaps, or along its first. */
typedef struct {
    uint64_t bytes, begin, end;
} Period;
/* False: it has no gaps, or no one period. Buffers of one root and period that share a byte do so
 * within the period as well. */
bool extents_period(const Extents *extents, Id buffer, bool outer, Period *period);
/* Do both hold their elements in the same bytes? */
bool extents_same(const Extents *extents, Id first, Id second);

/* What messages call a buffer. */
const char *extents_name(const Extents *extents, Id buffer);

#endif
