/* Moves the occurrences of a schedule back towards the given order, as far as its peak allows.
 *
 * Requires: a valid schedule within the limit. Leaves: the same occurrences in another order, valid
 * and within the limit too, so the cost is the same. A search leaves equal layers in orders that
 * differ by chance; in the given order they are equal again.
 *
 * A node that runs for the first time belongs where the problem has it. One that runs again belongs
 * just before the first of those it is made for, or before what it reads is overwritten. The
 * longest part of the schedule that is in that order already stays; each other occurrence is moved
 * once a pass. O(n log n) in the occurrences, beside what the profile takes.
 */
#include "planner/remat/internal.h"

#include <stdlib.h>

enum { PASSES = 4 };

/* An occurrence, and where it belongs. */
typedef struct {
    int32_t anchor;    /* the node whose place it has, or that it belongs before */
    int32_t node, run; /* run 0 is the first of the node */
    int32_t at;        /* its position: the number of items before it */
    bool stays;
} Item;

typedef struct {
    RematState *state;
    Arena *scratch;
    Item *item; /* in the order where they belong */
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
            item->anchor = x;
        else if (item->anchor == model->nodes && i + 1 < s->count) /* unread */
            item->anchor = item[1].anchor;
        for (int32_t k = start[x]; k < start[x + 1]; k++) {
            RematId killer = model->problem->value[model->reads.item[k]].killer;
            if (killer != REMAT_NONE && (int32_t)killer < item->anchor)
                item->anchor = (int32_t)killer;
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
    int32_t behind = -1; /* the slot of the last that is where it belongs */
    find_places(s);
    find_staying(s);
    for (int32_t i = 0; i < s->count; i++) {
        const Item *item = &s->item[i];
        if (!item->stays) {
            int32_t target = behind + 1;
            remat_lift(state, slot_of(s, item), &target);
            if (!is_within(state)) {
                remat_undo(state);
                continue;
            }
            remat_commit(state);
            moved = true;
        }
        behind = slot_of(s, item);
    }
    return moved;
}

RematSchedule remat_settle(const RematProblem *problem, const RematSchedule *schedule,
                           int64_t limit, Arena *arena)
{
    Arena *scratch = arena_new();
    const RematModel *model = remat_model(problem, scratch);
    Settling s = {.state = remat_state(model, limit - problem->base, scratch),
                  .scratch = scratch,
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
