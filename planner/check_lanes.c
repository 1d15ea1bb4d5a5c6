/* See check_lanes.h. */
#include "planner/check_lanes.h"

#include <stdlib.h>

static const uint32_t IS_LANE = UINT32_C(1) << 31; /* of an item among those of no lane */

/* A buffer that has a period. */
typedef struct {
    Id buffer, root;
    Period is;
} Member;

static int by_lane(const void *a, const void *b)
{
    const Member *x = a, *y = b;
    if (x->root != y->root)
        return x->root < y->root ? -1 : 1;
    return (x->is.bytes > y->is.bytes) - (x->is.bytes < y->is.bytes);
}

/* Buffers that lie in one root with one period. */
static Lane make_lane(Arena *arena, const Extents *extents, const Member *member, size_t count)
{
    Lane lane = {.begin = UINT64_MAX};
    uint64_t *place = ARENA_ARRAY(arena, uint64_t, 2 * count);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin, end;
        extents_of(extents, member[i].buffer, &begin, &end);
        lane.begin = begin < lane.begin ? begin : lane.begin;
        lane.end = end > lane.end ? end : lane.end;
        place[2 * i] = member[i].is.begin;
        place[2 * i + 1] = member[i].is.end;
    }
    lane.spans = spans_new(arena, place, 2 * count);
    return lane;
}

static void make_lanes(Lanes *l, Arena *arena, Member *member, size_t members)
{
    if (members)
        qsort(member, members, sizeof *member, by_lane);
    l->lane = ARENA_ARRAY(arena, Lane, members);
    for (size_t i = 0, end; i < members; i = end) {
        for (end = i; end < members && by_lane(&member[i], &member[end]) == 0; end++)
            l->of[member[end].buffer] = l->lanes;
        l->lane[l->lanes++] = make_lane(arena, l->extents, &member[i], end - i);
    }
}

static bool find_period(const Lanes *l, Id buffer, Period *period)
{
    return extents_period(l->extents, buffer, l->outer[l->extents->plan->buffer[buffer].root],
                          period);
}

/* By root: the kind of period in which its windows cover each other less. */
static bool *choose_periods(Arena *arena, const Extents *extents)
{
    const Plan *plan = extents->plan;
    double *inner = ARENA_ARRAY(arena, double, plan->buffers);
    double *outer = ARENA_ARRAY(arena, double, plan->buffers);
    bool *chosen = ARENA_ARRAY(arena, bool, plan->buffers);
    for (Id i = 0; i < plan->buffers; i++) {
        Id root = plan->buffer[i].root;
        Period p;
        if (plan->buffer[i].value == NONE || view_is_dense(&plan->buffer[i].layout))
            continue;
        bool good = extents_period(extents, i, false, &p);
        inner[root] += good ? (double)(p.end - p.begin) / (double)p.bytes : 1;
        good = extents_period(extents, i, true, &p);
        outer[root] += good ? (double)(p.end - p.begin) / (double)p.bytes : 1;
    }
    for (Id i = 0; i < plan->buffers; i++)
        chosen[i] = outer[i] < inner[i];
    return chosen;
}

Lanes lanes_new(Arena *arena, const Extents *extents)
{
    const Plan *plan = extents->plan;
    Lanes l = {.extents = extents,
               .of = ARENA_ARRAY(arena, Id, plan->buffers),
               .outer = choose_periods(arena, extents)};
    Member *member = ARENA_ARRAY(arena, Member, plan->buffers);
    uint64_t *place = ARENA_ARRAY(arena, uint64_t, 2 * (size_t)plan->buffers);
    size_t members = 0;
    for (Id i = 0; i < plan->buffers; i++) {
        extents_of(extents, i, &place[2 * i], &place[2 * i + 1]);
        l.of[i] = NONE;
        Member now = {.buffer = i, .root = plan->buffer[i].root};
        if (find_period(&l, i, &now.is))
            member[members++] = now;
    }
    l.spans = spans_new(arena, place, 2 * (size_t)plan->buffers);
    make_lanes(&l, arena, member, members);
    return l;
}

void lanes_clear(Lanes *l)
{
    spans_clear(&l->spans);
    for (Id i = 0; i < l->lanes; i++) {
        spans_clear(&l->lane[i].spans);
        l->lane[i].listed = false;
    }
}

void lanes_add(Lanes *l, Id buffer, uint32_t item)
{
    uint64_t begin, end;
    Period period;
    if (l->of[buffer] == NONE) {
        extents_of(l->extents, buffer, &begin, &end);
        spans_add(&l->spans, begin, end, item);
        return;
    }
    Lane *lane = &l->lane[l->of[buffer]];
    find_period(l, buffer, &period);
    spans_add(&lane->spans, period.begin, period.end, item);
    if (!lane->listed)
        spans_add(&l->spans, lane->begin, lane->end, IS_LANE | l->of[buffer]);
    lane->listed = true;
}

typedef struct {
    Lanes *lanes;
    Id buffer;
    bool (*stays)(uint32_t item, void *data);
    void *data;
} Question;

/* Windows of the lane overlap only where they do in a period; anything else overlaps all of them.
 */
static void ask_lane(const Question *q, Lane *lane)
{
    Lanes *l = q->lanes;
    Period period = {.begin = lane->spans.place[0],
                     .end = lane->spans.place[lane->spans.places - 1]};
    if (l->of[q->buffer] != NONE && lane == &l->lane[l->of[q->buffer]])
        find_period(l, q->buffer, &period);
    spans_visit(&lane->spans, period.begin, period.end, q->stays, q->data);
    lane->listed = !spans_empty(&lane->spans);
}

static bool ask(uint32_t item, void *data)
{
    const Question *q = data;
    if (!(item & IS_LANE))
        return q->stays(item, q->data);
    Lane *lane = &q->lanes->lane[item & ~IS_LANE];
    if (lane->asked != q->lanes->questions)
        ask_lane(q, lane);
    lane->asked = q->lanes->questions;
    return lane->listed;
}

void lanes_visit(Lanes *l, Id buffer, bool (*stays)(uint32_t item, void *), void *data)
{
    Question q = {l, buffer, stays, data};
    uint64_t begin, end;
    l->questions++;
    extents_of(l->extents, buffer, &begin, &end);
    spans_visit(&l->spans, begin, end, ask, &q);
}
