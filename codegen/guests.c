/* What keeps equal layers from being one loop, where the planner waits for memory:
 *
 * Guests, calls among those of a layer that are not part of it, like the gradient of a table. They
 * are numbered after all others.
 *
 * Strays, calls that the first or the last layer runs earlier or later than the others do, at the
 * peak. They are numbered as if they ran where they do in the other layers.
 *
 * Both are listed with the call that they run before.
 *
 * Requires: the calls of a program in the order of time. Leaves: repeats without gaps. */
#include "codegen/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GUESTS = 2, MOST_STRAYS = 4 }; /* of a loop: it should read as one */

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
    Id begin;    /* the first call of the program */
    Id *order;   /* by number, from 0: the call that gets it */
    Id *before;  /* by call: the call that a guest or stray runs before; NONE: it is neither */
    bool *guest; /* by call */
} Guests;

/* ---- Strays --------------------------------------------------------------------------------- */

/* One iteration: the calls that take its numbers, and those of them that stay in order. */
typedef struct {
    Id at;    /* of its first call, among those that have others like them */
    Id *slot; /* by call: its number in the iteration */
    bool *stays;
    Id strays;
} Iteration;

/* Whether two calls are named alike, but for the number of the layer. */
static bool is_like(const Emission *e, const EmitCall *one, const EmitCall *other)
{
    const char *a = emission_label(e, one), *b = emission_label(e, other);
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    while (i && isdigit((unsigned char)a[i - 1]))
        i--;
    a += i + strspn(a + i, "0123456789");
    b += i + strspn(b + i, "0123456789");
    return call_kind(e, one, true) == call_kind(e, other, true) && strcmp(a, b) == 0;
}

/* Finds the call of the body that each call of an iteration is like. */
static bool fill_slots(const Emission *e, const Id *call, const Id *body, Id period, Id *slot)
{
    bool *taken = ARENA_ARRAY(e->arena, bool, period);
    for (Id j = 0; j < period; j++) {
        Id s = 0;
        while (s < period && (taken[s] || !is_like(e, &e->call.at[call[j]], &e->call.at[body[s]])))
            s++;
        if (s == period)
            return false;
        taken[s] = true;
        slot[j] = s;
    }
    return true;
}

/* Those that stay in order: the longest part of the slots that ascends. */
static void keep_order(Arena *arena, Iteration *it, Id period)
{
    Id *length = ARENA_ARRAY(arena, Id, period), *previous = ARENA_ARRAY(arena, Id, period);
    Id best = 0;
    for (Id j = 0; j < period; j++) {
        length[j] = 1;
        previous[j] = NONE;
        for (Id k = 0; k < j; k++)
            if (it->slot[k] < it->slot[j] && length[k] >= length[j]) {
                length[j] = length[k] + 1;
                previous[j] = k;
            }
        best = length[j] > length[best] ? j : best;
    }
    it->strays = period - length[best];
    for (Id j = best; j != NONE; j = previous[j])
        it->stays[j] = true;
}

/* Whether the calls from `at` on are those of the body in another order. */
static bool find_strays(const Emission *e, const Id *rest, Id at, Id body, Id period, Iteration *it)
{
    *it = (Iteration){.at = at,
                      .slot = ARENA_ARRAY(e->arena, Id, period),
                      .stays = ARENA_ARRAY(e->arena, bool, period)};
    if (!fill_slots(e, rest + at, rest + body, period, it->slot))
        return false;
    keep_order(e->arena, it, period);
    return it->strays <= MOST_STRAYS && it->stays[period - 1]; /* the last has a call to precede */
}

static void number_strays(Guests *g, const Id *rest, Id period, const Iteration *it)
{
    Id next = NONE;
    for (Id j = period; j-- > 0;) {
        const Id call = rest[it->at + j];
        g->order[rest[it->at + it->slot[j]] - g->begin] = call;
        if (it->stays[j])
            next = call;
        else
            g->before[call - g->begin] = next;
    }
}

/* ---- Guests --------------------------------------------------------------------------------- */

/* Those of one repeat of `rest`, the calls that have others like them. */
static void invite(Guests *g, const Id *rest, Repeat r)
{
    Id next = NONE;
    const Id first = rest[r.begin], last = r.begin + r.period * r.times - 1;
    for (Id i = rest[last] + 1, at = last + 1; i-- > first;) {
        if (at > r.begin && rest[at - 1] == i) {
            at--;
            next = g->before[i - g->begin] == NONE ? i : next; /* no stray */
        } else {
            g->before[i - g->begin] = next;
            g->guest[i - g->begin] = true;
        }
    }
}

/* Guests come last. */
static void reorder(Emission *e, const Guests *g, Id count)
{
    if (!count) /* there may be no list either */
        return;
    EmitCall *old = ARENA_ARRAY(e->arena, EmitCall, count), *call = e->call.at + g->begin;
    Id *now = ARENA_ARRAY(e->arena, Id, count), next = 0;
    memcpy(old, call, count * sizeof *old);
    for (int guests = 0; guests <= 1; guests++)
        for (Id i = 0; i < count; i++) {
            const Id from = g->order[i] - g->begin;
            if (g->guest[from] != (guests == 1))
                continue;
            now[from] = g->begin + next;
            call[next++] = old[from];
        }
    for (Id i = 0; i < count; i++) /* in the order of time */
        if (g->before[i] != NONE) {
            e->call.at[now[i]].before = now[g->before[i] - g->begin];
            ARRAY_PUSH(e->arena, &e->guest, now[i]);
        }
}

/* A repeat with the iterations before and after it that run the same calls in another order. */
static void extend(const Emission *e, Guests *g, const Id *rest, Id rests, const Repeats *plain,
                   Repeat r)
{
    Iteration it[2];
    Id found = 0;
    const Id body = r.begin, period = r.period;
    if (r.begin >= period && find_strays(e, rest, r.begin - period, body, period, &it[found])) {
        r.begin -= period;
        r.times++;
        found++;
    }
    const Id end = r.begin + period * r.times;
    if (end + period <= rests && find_strays(e, rest, end, body, period, &it[found])) {
        r.times++;
        found++;
    }
    const Id calls = period * r.times, first = rest[r.begin], last = rest[r.begin + calls - 1];
    const Id guests = last - first + 1 - calls;
    if (guests > MOST_GUESTS ||
        calls - period <= saved_between(plain, first - g->begin, last - g->begin))
        return;
    for (Id i = 0; i < found; i++)
        number_strays(g, rest, period, &it[i]);
    invite(g, rest, r);
}

void guests_move(Emission *e, Id begin, Id count)
{
    Guests g = {.begin = begin,
                .order = ARENA_ARRAY(e->arena, Id, count + 1),
                .before = ARENA_ARRAY(e->arena, Id, count + 1),
                .guest = ARENA_ARRAY(e->arena, bool, count + 1)};
    Id *all = ARENA_ARRAY(e->arena, Id, count + 1), *rest = ARENA_ARRAY(e->arena, Id, count + 1);
    uint64_t *kind = ARENA_ARRAY(e->arena, uint64_t, count + 1);
    Id rests = 0;
    for (Id i = 0; i < count; i++) {
        all[i] = g.order[i] = begin + i;
        g.before[i] = NONE;
        kind[i] = call_kind(e, &e->call.at[begin + i], true);
    }
    if (count)
        qsort(kind, count, sizeof *kind, by_number);
    for (Id i = 0; i < count; i++)
        if (!is_single(kind, count, call_kind(e, &e->call.at[begin + i], true)))
            rest[rests++] = begin + i;
    const Repeats plain = find(e, all, count), wanted = find(e, rest, rests);
    for (size_t i = 0; i < wanted.count; i++)
        extend(e, &g, rest, rests, &plain, wanted.at[i]);
    reorder(e, &g, count);
}
