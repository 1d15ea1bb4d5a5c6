/* Calls that stand between those of equal layers and are none of theirs: a planner that waits for
 * memory may put the gradient of a table among the ops of the last layer. They would cut its
 * iteration off the loop, so they are numbered behind all others, each with the call that it runs
 * before.
 *
 * Requires: the calls of a program in the order of time. Leaves: repeats without gaps. */
#include "codegen/internal.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_GUESTS = 2 }; /* of a loop: it should read as one */

static int by_number(const void *a, const void *b)
{
    const uint64_t *m = a, *n = b;
    return (*m > *n) - (*m < *n);
}

/* Whether a kind occurs once among the sorted ones. */
static bool is_single(const uint64_t *sorted, size_t count, uint64_t kind)
{
    const uint64_t *at = bsearch(&kind, sorted, count, sizeof kind, by_number);
    return (at == sorted || at[-1] != kind) && (at + 1 == sorted + count || at[1] != kind);
}

static Repeats find(const Emission *e, const Id *call, Id count)
{
    RepeatItems items = {.count = count, .least = LEAST_CALLS_SAVED};
    uint64_t *kind = ARENA_ARRAY(e->arena, uint64_t, count + 1);
    Id *group = ARENA_ARRAY(e->arena, Id, count + 1);
    for (Id i = 0; i < count; i++) {
        kind[i] = call_kind(e, &e->call.at[call[i]], true);
        group[i] = call_group(e, &e->call.at[call[i]]);
    }
    items.kind = kind;
    items.group = group;
    return repeats_find(e->arena, &items);
}

/* Calls that loops save between two calls. */
static Id saved_between(const Repeats *repeats, Id first, Id last)
{
    Id saved = 0;
    for (size_t i = 0; i < repeats->count; i++) {
        const Repeat *r = &repeats->at[i];
        if (r->begin >= first && r->begin + r->period * r->times <= last + 1)
            saved += r->period * (r->times - 1);
    }
    return saved;
}

typedef struct {
    Id *before; /* by call from `begin` on: the call that a guest runs before; NONE: none */
    Id begin;
} Guests;

/* Those of one repeat of `rest`, the calls that have others like them. */
static void invite(Guests *g, const Id *rest, Repeat r)
{
    Id at = r.begin;
    for (Id i = rest[at]; at < r.begin + r.period * r.times; i++)
        if (rest[at] == i)
            at++;
        else
            g->before[i - g->begin] = rest[at];
}

/* Guests come last. */
static void reorder(Emission *e, const Guests *g, Id count)
{
    if (!count) /* there may be no list either */
        return;
    EmitCall *old = ARENA_ARRAY(e->arena, EmitCall, count), *call = e->call.at + g->begin;
    Id *now = ARENA_ARRAY(e->arena, Id, count), next = 0;
    memcpy(old, call, count * sizeof *old);
    for (Id i = 0; i < count; i++)
        if (g->before[i] == NONE) {
            now[i] = g->begin + next;
            call[next++] = old[i];
        }
    for (Id i = 0; i < count; i++)
        if (g->before[i] != NONE) {
            call[next] = old[i];
            call[next].before = now[g->before[i] - g->begin];
            ARRAY_PUSH(e->arena, &e->guest, g->begin + next++);
        }
}

void guests_move(Emission *e, Id begin, Id count)
{
    Guests g = {ARENA_ARRAY(e->arena, Id, count + 1), begin};
    Id *all = ARENA_ARRAY(e->arena, Id, count + 1), *rest = ARENA_ARRAY(e->arena, Id, count + 1);
    uint64_t *kind = ARENA_ARRAY(e->arena, uint64_t, count + 1);
    Id rests = 0;
    for (Id i = 0; i < count; i++) {
        all[i] = begin + i;
        g.before[i] = NONE;
        kind[i] = call_kind(e, &e->call.at[begin + i], true);
    }
    if (count)
        qsort(kind, count, sizeof *kind, by_number);
    for (Id i = 0; i < count; i++)
        if (!is_single(kind, count, call_kind(e, &e->call.at[begin + i], true)))
            rest[rests++] = begin + i;
    const Repeats plain = find(e, all, count), wanted = find(e, rest, rests);
    for (size_t i = 0; i < wanted.count; i++) {
        const Repeat r = wanted.at[i];
        const Id calls = r.period * r.times, first = rest[r.begin],
                 last = rest[r.begin + calls - 1];
        const Id guests = last - first + 1 - calls;
        if (guests > 0 && guests <= MOST_GUESTS &&
            calls - r.period > saved_between(&plain, first - begin, last - begin))
            invite(&g, rest, r);
    }
    reorder(e, &g, count);
}
