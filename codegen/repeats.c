/* Where a list repeats itself: the layers of a deep model.
 *
 * Requires: a kind for each item; equal kinds can be written alike. Leaves: repeats that do not
 * overlap, in order. */
#include "codegen/internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PERIOD = 400 }; /* items of one iteration */

typedef struct {
    Arena *arena;
    const RepeatItems *items;
    uint8_t *taken; /* by item: part of a repeat */
    Repeats repeats;
} Finder;

static Id saving(Repeat r)
{
    return r.period * (r.times - 1);
}

static int by_saving(const void *a, const void *b)
{
    const Repeat *m = a, *n = b;
    if ((m->times > 2) != (n->times > 2)) /* two programs are alike, but so are their layers */
        return m->times > 2 ? -1 : 1;
    if (saving(*m) != saving(*n))
        return saving(*m) > saving(*n) ? -1 : 1;
    if (m->period != n->period)
        return m->period < n->period ? -1 : 1;
    return (m->begin > n->begin) - (m->begin < n->begin);
}

static int by_begin(const void *a, const void *b)
{
    const Repeat *m = a, *n = b;
    return (m->begin > n->begin) - (m->begin < n->begin);
}

/* Iterations that begin where a group begins: where there is a choice, an iteration is a layer. */
static Id whole_groups(const Finder *f, Repeat r)
{
    const Id *group = f->items->group;
    Id count = 0;
    for (Id k = 0; k < r.times && group; k++) {
        Id at = r.begin + k * r.period;
        count += at == 0 || group[at] != group[at - 1];
    }
    return count;
}

/* Takes the longest part of it that is still free. `length`: items, a period of them more than
 * those that are like one a period later. */
static void take(Finder *f, Repeat r, Id length)
{
    Id end = r.begin + length, best = 0, best_begin = 0, begin = r.begin;
    for (Id i = r.begin; i <= end; i++)
        if (i == end || f->taken[i]) {
            if (i - begin > best) {
                best = i - begin;
                best_begin = begin;
            }
            begin = i + 1;
        }
    Repeat chosen = {best_begin, r.period, best / r.period};
    if (chosen.times < 2 || saving(chosen) < f->items->least)
        return;
    for (Id shift = 1; shift <= best % r.period; shift++) {
        Repeat other = {best_begin + shift, r.period, chosen.times};
        if (whole_groups(f, other) > whole_groups(f, chosen))
            chosen = other;
    }
    memset(f->taken + chosen.begin, 1, chosen.period * chosen.times);
    ARRAY_PUSH(f->arena, &f->repeats, chosen);
}

/* For each period, the parts where every item is like the one a period later: O(items x
 * MAX_PERIOD). Those that save most are taken first. */
Repeats repeats_find(Arena *arena, const RepeatItems *items)
{
    Finder f = {
        .arena = arena, .items = items, .taken = ARENA_ARRAY(arena, uint8_t, items->count + 1)};
    ARRAY(Repeat) found = {0};
    const uint64_t *kind = items->kind;
    for (Id period = 1; period <= MAX_PERIOD && period * 2 <= items->count; period++)
        for (Id i = 0, length = 0; i + period <= items->count; i++) {
            if (i + period < items->count && kind[i] == kind[i + period]) {
                length++;
                continue;
            }
            Repeat r = {i - length, period, length / period + 1};
            if (r.times >= 2 && saving(r) >= items->least)
                ARRAY_PUSH(arena, &found, r);
            length = 0;
        }
    if (found.count)
        qsort(found.at, found.count, sizeof *found.at, by_saving);
    for (size_t i = 0; i < found.count; i++) {
        Repeat r = found.at[i];
        Id end = r.begin + r.period;
        while (end < items->count && kind[end] == kind[end - r.period])
            end++;
        take(&f, r, end - r.begin);
    }
    if (f.repeats.count)
        qsort(f.repeats.at, f.repeats.count, sizeof *f.repeats.at, by_begin);
    return f.repeats;
}
