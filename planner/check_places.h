/* Where the buffers of a plan lie, for the checker. */
#ifndef GPLAN_CHECK_PLACES_H
#define GPLAN_CHECK_PLACES_H

#include "planner/planner.h"

typedef struct {
    const Plan *plan;
    uint64_t *base; /* by buffer: where it begins. The caller's memory lies behind the arena, each
                       block of it apart from the others. */
} Places;

/* Finds them. What is wrong with a buffer by itself, or NULL: it has the dims of its value, lies
 * within its root and the arena, is aligned, and no two of its elements share bytes. */
const char *places_find(Places *places, const Plan *plan, const Target *target, Arena *arena);

/* Bytes from the first to past the last element. */
void places_extent(const Places *places, Id buffer, uint64_t *begin, uint64_t *end);
/* Is there a byte of both? */
bool places_overlap(const Places *places, Id first, Id second);
/* Do both hold their elements in the same bytes? */
bool places_same(const Places *places, Id first, Id second);

/* What messages call a buffer. */
const char *places_name(const Places *places, Id buffer);

#endif
