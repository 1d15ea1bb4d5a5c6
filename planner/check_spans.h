/* Spans of bytes, each with an item, for the checker alone: which of them does a write overlap?
 *
 * A tree over the offsets where spans may begin and end. A span is kept in the few nodes that make
 * it up, so adding one and finding those that overlap another take time logarithmic in the places,
 * and linear in what is found.
 */
#ifndef GPLAN_CHECK_SPANS_H
#define GPLAN_CHECK_SPANS_H

#include "frontend/base/arena.h"

#include <stdbool.h>

typedef struct {
    uint32_t item, next;
} SpanEntry;

typedef struct {
    Arena *arena;
    uint64_t *place; /* ascending, each once */
    size_t places;
    uint32_t *head; /* by node: its first entry, or UINT32_MAX */
    bool *filled;   /* by node: it or one below it has an entry */
    size_t nodes;
    ARRAY(SpanEntry) entry;
    uint32_t free; /* the first entry that is not in use, or UINT32_MAX */
} Spans;

/* Takes the places over and sorts them; every span begins and ends at one of them. */
Spans spans_new(Arena *arena, uint64_t *place, size_t count);
void spans_clear(Spans *spans);
bool spans_empty(const Spans *spans);
void spans_add(Spans *spans, uint64_t begin, uint64_t end, uint32_t item);
/* Asks `stays` for every item that shares a byte with the span, some of them more than once; an
 * item that does not stay is taken out, where it was found. */
void spans_visit(Spans *spans, uint64_t begin, uint64_t end, bool (*stays)(uint32_t item, void *),
                 void *data);

#endif
