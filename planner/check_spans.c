/* A tree of spans: node 1 is all places, node n is halved by 2n and 2n + 1. */
#include "planner/check_spans.h"

#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

Spans spans_new(Arena *arena, uint64_t *place, size_t count)
{
    Spans spans = {.arena = arena, .place = place, .nodes = 2};
    if (count)
        qsort(place, count, sizeof *place, by_place);
    for (size_t i = 0; i < count; i++)
        if (!spans.places || place[spans.places - 1] != place[i])
            place[spans.places++] = place[i];
    while (spans.nodes < 2 * spans.places)
        spans.nodes *= 2;
    spans.head = ARENA_ARRAY(arena, uint32_t, spans.nodes);
    spans.filled = ARENA_ARRAY(arena, bool, spans.nodes);
    spans_clear(&spans);
    return spans;
}

void spans_clear(Spans *spans)
{
    memset(spans->head, 0xff, spans->nodes * sizeof *spans->head);
    memset(spans->filled, 0, spans->nodes * sizeof *spans->filled);
    spans->entry.count = 0;
    spans->free = UINT32_MAX;
}

bool spans_empty(const Spans *spans)
{
    return !spans->filled[1];
}

/* The number of the place, which is there. */
static size_t number_of(const Spans *spans, uint64_t place)
{
    const uint64_t *found =
        bsearch(&place, spans->place, spans->places, sizeof *spans->place, by_place);
    return (size_t)(found - spans->place);
}

static void push(Spans *spans, size_t node, uint32_t item)
{
    uint32_t id = spans->free;
    if (id == UINT32_MAX) {
        id = (uint32_t)spans->entry.count;
        ARRAY_PUSH(spans->arena, &spans->entry, (SpanEntry){0});
    } else {
        spans->free = spans->entry.at[id].next;
    }
    spans->entry.at[id] = (SpanEntry){item, spans->head[node]};
    spans->head[node] = id;
}

/* The range of a node: from the place `low` on, `size` of them. */
typedef struct {
    size_t node, low, size;
} Range;

static Range half(Range s, size_t which)
{
    return (Range){2 * s.node + which, s.low + which * (s.size / 2), s.size / 2};
}

static void add(Spans *spans, Range s, size_t from, size_t to, uint32_t item)
{
    if (from >= s.low + s.size || to <= s.low)
        return;
    spans->filled[s.node] = true;
    if (from <= s.low && s.low + s.size <= to) {
        push(spans, s.node, item);
        return;
    }
    add(spans, half(s, 0), from, to, item);
    add(spans, half(s, 1), from, to, item);
}

void spans_add(Spans *spans, uint64_t begin, uint64_t end, uint32_t item)
{
    add(spans, (Range){1, 0, spans->nodes / 2}, number_of(spans, begin), number_of(spans, end),
        item);
}

typedef struct {
    size_t from, to;
    bool (*stays)(uint32_t item, void *data);
    void *data;
} Question;

static void visit(Spans *spans, Range s, const Question *q)
{
    if (q->from >= s.low + s.size || q->to <= s.low || !spans->filled[s.node])
        return;
    uint32_t *link = &spans->head[s.node];
    while (*link != UINT32_MAX) {
        uint32_t id = *link;
        SpanEntry *entry = &spans->entry.at[id];
        if (q->stays(entry->item, q->data)) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        entry->next = spans->free;
        spans->free = id;
    }
    bool below = false;
    if (s.size > 1) {
        visit(spans, half(s, 0), q);
        visit(spans, half(s, 1), q);
        below = spans->filled[2 * s.node] || spans->filled[2 * s.node + 1];
    }
    spans->filled[s.node] = below || spans->head[s.node] != UINT32_MAX;
}

void spans_visit(Spans *spans, uint64_t begin, uint64_t end, bool (*stays)(uint32_t item, void *),
                 void *data)
{
    Question q = {number_of(spans, begin), number_of(spans, end), stays, data};
    visit(spans, (Range){1, 0, spans->nodes / 2}, &q);
}
