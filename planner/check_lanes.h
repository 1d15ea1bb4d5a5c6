/* What was written where, for the checker: contents by the bytes of their buffers.
 *
 * Windows of one concat are interleaved: from its first to its last byte, each overlaps all the
 * others. But they have a period, a row of the result, and are disjoint within it. So the windows
 * of one root with one period make a lane, which sorts them by their offset in the period, and is
 * itself sorted among the contents that are in no lane. Where concats nest there are several
 * periods; the one in which most windows of the root are disjoint is taken. Near-linear in what a
 * write really overlaps.
 */
#ifndef GPLAN_CHECK_LANES_H
#define GPLAN_CHECK_LANES_H

#include "planner/check_extents.h"
#include "planner/check_spans.h"

typedef struct {
    uint64_t begin, end; /* bytes of all its buffers, from the first to past the last */
    Spans spans;         /* of items, by their offset in a period */
    bool listed;         /* it has items, and is sorted among those of no lane */
    uint32_t asked;      /* the last query that visited it */
} Lane;

typedef struct {
    const Extents *extents;
    Spans spans; /* of items that are in no lane, and of lanes */
    Lane *lane;
    Id lanes;
    Id *of;      /* by buffer: its lane, or NONE */
    bool *outer; /* by root: whose period that is, see extents_period */
    uint32_t questions;
} Lanes;

Lanes lanes_new(Arena *arena, const Extents *extents);
void lanes_clear(Lanes *lanes);
/* An item with the extent of the buffer; below 2^31. */
void lanes_add(Lanes *lanes, Id buffer, uint32_t item);
/* Asks `stays` for every item that may share a byte with the buffer, some of them more than once;
 * an item that does not stay is taken out, where it was found. */
void lanes_visit(Lanes *lanes, Id buffer, bool (*stays)(uint32_t item, void *), void *data);

#endif
