/* Moves the occurrences of a schedule back towards the given order, as far as its peak allows.
 *
 * Requires: a valid schedule within the limit. Leaves: the same occurrences in another order, valid
 * and within the limit too, so the cost is the same. A search leaves equal layers in orders that
 * differ by chance; in the given order they are equal again. Where the limit does not let one of
 * them go back, all get its order if that makes more of them equal.
 *
 * A node that runs for the first time belongs where the problem has it. One that runs again belongs
 * just before the first of those it is made for, or before what it reads is overwritten. The
 * longest part of the schedule that is in that order already stays; each other occurrence is moved
 * once a pass. O(n log n) in the occurrences, beside what the profile takes.
 */
#include "planner/remat/internal.h"

#include <stdlib.h>
#include <string.h>

enum { PASSES = 4 };

/* An occurrence, and where it belongs. */
typedef struct {
    int32_t anchor;    /* the rank that it has, or belongs before */
    int32_t node, run; /* run 0 is the first of the node */
    int32_t at;        /* its position: the number of items before it */
    bool stays;
} Item;

typedef struct {
    RematState *state;
    Arena *scratch;
    const int32_t *rank; /* by node: the order that occurrences are moved to */
    Item *item;          /* in the order where they belong */
    int32_t count;
} Settling;

typedef ARRAY(int32_t) Makers;

/* ---- Where occurrences belong --------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    if (x->anchor != y->anchor)
        return x->anchor < y->anchor ? -1 : 1;
    if (!x->run != !y->run)
        return x->run ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

/* The occurrences as they stand, and by tracked read the one that made what is read, or -1. */
static Makers list_items(Settling *s)
{
    const RematState *state = s->state;
    const RematModel *model = state->model;
    int32_t *latest = ARENA_ARRAY(s->scratch, int32_t, model->nodes);
    int32_t *runs = ARENA_ARRAY(s->scratch, int32_t, model->nodes);
    Makers maker = {0};
    s->count = 0;
    for (int32_t slot = 0; slot < state->slots; slot++) {
        int32_t x = state->at[slot];
        if (x < 0)
            continue;
        for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
            int32_t producer = model->producer[model->reads.item[i]];
            ARRAY_PUSH(s->scratch, &maker, producer < 0 ? -1 : latest[producer]);
        }
        latest[x] = s->count;
        s->item[s->count] =
            (Item){.anchor = model->nodes, .node = x, .run = runs[x]++, .at = s->count};
        s->count++;
    }
    return maker;
}

/* From the end to the beginning: readers of an occurrence come after it. */
static void find_places(Settling *s)
{
    const RematModel *model = s->state->model;
    const int32_t *start = model->reads.start;
    Makers maker = list_items(s);
    size_t read = maker.count;
    for (int32_t i = s->count; i-- > 0;) {
        Item *item = &s->item[i];
        int32_t x = item->node;
        if (!item->run)
            item->anchor = s->rank[x];
        else if (item->anchor == model->nodes && i + 1 < s->count) /* unread */
            item->anchor = item[1].anchor;
        for (int32_t k = start[x]; k < start[x + 1]; k++) {
            RematId killer = model->problem->value[model->reads.item[k]].killer;
            if (killer != REMAT_NONE && s->rank[killer] < item->anchor)
                item->anchor = s->rank[killer];
        }
        for (int32_t k = start[x]; k < start[x + 1]; k++) {
            int32_t from = maker.at[--read];
            if (from >= 0 && item->anchor < s->item[from].anchor)
                s->item[from].anchor = item->anchor;
        }
    }
    qsort(s->item, (size_t)s->count, sizeof *s->item, by_place);
}

/* The longest part of the items that stand as they belong: patience sorting. */
static void find_staying(Settling *s)
{
    int32_t *top = ARENA_ARRAY(s->scratch, int32_t, s->count + 1); /* by length: its last item */
    int32_t *before = ARENA_ARRAY(s->scratch, int32_t, s->count + 1);
    int32_t longest = 0;
    for (int32_t i = 0; i < s->count; i++) {
        int32_t low = 0, high = longest;
        while (low < high) {
            int32_t middle = (low + high) / 2;
            if (s->item[top[middle]].at < s->item[i].at)
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? top[low - 1] : -1;
        top[low] = i;
        longest += low == longest;
    }
    for (int32_t i = longest ? top[longest - 1] : -1; i >= 0; i = before[i])
        s->item[i].stays = true;
}

/* ---- Moving them there ---------------------------------------------------------------------- */

static bool is_within(const RematState *state)
{
    return !state->bad && !state->penalty;
}

static int32_t slot_of(const Settling *s, const Item *item)
{
    return event_slot(s->state->runs[item->node].at[item->run]);
}

/* From the first on, each right after the one before it. False: nothing was moved. */
static bool move_all(Settling *s)
{
    RematState *state = s->state;
    bool moved = false;
    int32_t last = -1; /* the slot of the last that is where it belongs */
    find_places(s);
    find_staying(s);
    for (int32_t i = 0; i < s->count; i++) {
        const Item *item = &s->item[i];
        if (!item->stays) {
            int32_t target = last + 1;
            remat_lift(state, slot_of(s, item), &target);
            if (!is_within(state)) {
                remat_undo(state);
                continue;
            }
            remat_commit(state);
            moved = true;
        }
        last = slot_of(s, item);
    }
    return moved;
}

/* Towards the order of ranks. */
static RematSchedule move_to(const RematProblem *problem, const RematSchedule *schedule,
                             const int32_t *rank, int64_t limit, Arena *arena)
{
    Arena *scratch = arena_new();
    const RematModel *model = remat_model(problem, scratch);
    Settling s = {.state = remat_state(model, limit - problem->base, scratch),
                  .scratch = scratch,
                  .rank = rank,
                  .item = ARENA_ARRAY(scratch, Item, schedule->count)};
    RematSchedule settled = {ARENA_ARRAY(arena, RematId, schedule->count), 0};
    remat_layout(s.state, schedule->node, schedule->count);
    for (int i = 0; i < PASSES && is_within(s.state) && move_all(&s); i++)
        continue;
    for (int32_t slot = 0; slot < s.state->slots; slot++)
        if (s.state->at[slot] >= 0)
            settled.node[settled.count++] = (RematId)s.state->at[slot];
    arena_free(scratch);
    return settled;
}

static int32_t *given_ranks(const RematProblem *problem, Arena *arena)
{
    int32_t *rank = ARENA_ARRAY(arena, int32_t, problem->nodes + 1);
    for (RematId n = 0; n < problem->nodes; n++)
        rank[n] = (int32_t)n;
    return rank;
}

/* ---- Equal layers --------------------------------------------------------------------------- */

/* The layers of a problem, and the places of their nodes in a schedule. */
typedef struct {
    const RematLayers *run;
    size_t runs;
    const int32_t *place; /* by node: within its layer, as it runs first */
} Layers;

/* For each node of a layer, how many others of it run before. */
static Layers find_layers(const RematProblem *problem, const RematSchedule *schedule, Arena *arena)
{
    int32_t *first = ARENA_ARRAY(arena, int32_t, problem->nodes + 1);
    int32_t *place = ARENA_ARRAY(arena, int32_t, problem->nodes + 1);
    RematLayers *run;
    const size_t runs = remat_find_layers(problem, &run, arena);
    for (size_t i = schedule->count; i-- > 0;)
        first[schedule->node[i]] = (int32_t)i;
    for (size_t r = 0; r < runs; r++)
        for (int32_t i = 0; i < run[r].period * run[r].times; i++) {
            const int32_t *layer = first + run[r].begin + i / run[r].period * run[r].period;
            for (int32_t k = 0; k < run[r].period; k++)
                place[run[r].begin + i] += layer[k] < first[run[r].begin + i];
        }
    return (Layers){run, runs, place};
}

/* Layers that run in the order of the one before them. */
static int32_t count_alike(const Layers *l)
{
    int32_t alike = 0;
    for (size_t r = 0; r < l->runs; r++)
        for (int32_t k = 1; k < l->run[r].times; k++) {
            const int32_t *place = l->place + l->run[r].begin + k * l->run[r].period;
            alike +=
                !memcmp(place, place - l->run[r].period, (size_t)l->run[r].period * sizeof *place);
        }
    return alike;
}

/* The layer of which most nodes are not where they were given. */
static const int32_t *find_farthest(const Layers *l, RematLayers run)
{
    const int32_t *farthest = l->place + run.begin;
    int32_t most = 0;
    for (int32_t k = 0; k < run.times; k++) {
        const int32_t *place = l->place + run.begin + k * run.period;
        int32_t moved = 0;
        for (int32_t i = 0; i < run.period; i++)
            moved += place[i] != i;
        if (moved > most) {
            most = moved;
            farthest = place;
        }
    }
    return farthest;
}

/* Layers of a run that differ all get the order of the one that is farthest from the given one:
 * what did not let that one go back may let the others come. */
static RematSchedule follow_one(const RematProblem *problem, const RematSchedule *settled,
                                int64_t limit, Arena *arena)
{
    Arena *scratch = arena_new();
    const Layers were = find_layers(problem, settled, scratch);
    int32_t *rank = given_ranks(problem, scratch), all = 0;
    RematSchedule moved = *settled;
    for (size_t r = 0; r < were.runs; r++) {
        const RematLayers run = were.run[r];
        const int32_t *place = find_farthest(&were, run);
        all += run.times - 1;
        for (int32_t i = 0; i < run.period * run.times; i++)
            rank[run.begin + i] = run.begin + i - i % run.period + place[i % run.period];
    }
    if (count_alike(&were) < all) {
        moved = move_to(problem, settled, rank, limit, arena);
        const Layers are = find_layers(problem, &moved, scratch);
        if (count_alike(&are) <= count_alike(&were))
            moved = *settled;
    }
    arena_free(scratch);
    return moved;
}

RematSchedule remat_settle(const RematProblem *problem, const RematSchedule *schedule,
                           int64_t limit, Arena *arena)
{
    const int32_t *rank = given_ranks(problem, arena);
    const RematSchedule settled = move_to(problem, schedule, rank, limit, arena);
    return follow_one(problem, &settled, limit, arena);
}
