/* A schedule under edit: insert, remove and shift occurrences, with the live profile kept up to
 * date. An edit costs a search in each event list of the node and one range addition for each
 * value whose life changed. */
#include "planner/remat/internal.h"

#include <string.h>

/* What a value kept across a node that should not see it weighs there. */
#define HINT_WEIGHT ((int64_t)1 << 44)

enum { BLOCKS_PER_TICK = 16 }; /* whole blocks that cost about as much as one event */

/* ---- the profile ---- */

static int64_t excess(const RematState *state, int64_t bytes)
{
    return bytes > state->budget ? bytes - state->budget : 0;
}

static void set_top(RematState *state, int32_t block, int64_t top)
{
    state->penalty += excess(state, top) - excess(state, state->top[block]);
    state->top[block] = top;
}

int64_t remat_block_top(const RematState *state, int32_t block)
{
    const int64_t *live = state->live + ((size_t)block << state->block_shift);
    int64_t top = live[0];
    for (int32_t i = 1; i < 1 << state->block_shift; i++)
        top = live[i] > top ? live[i] : top;
    return top + state->pending[block];
}

/* Looks at the whole block only when the slots that fell held its maximum. */
static void add_within(RematState *state, int32_t block, int32_t from, int32_t to, int64_t bytes)
{
    int64_t *live = state->live, top = live[from];
    for (int32_t i = from; i <= to; i++) {
        top = live[i] > top ? live[i] : top;
        live[i] += bytes;
    }
    top += state->pending[block];
    if (bytes > 0 && top + bytes > state->top[block])
        set_top(state, block, top + bytes);
    else if (bytes < 0 && top == state->top[block])
        set_top(state, block, remat_block_top(state, block));
}

/* Whole blocks, the inner loop of large graphs: everything in registers. */
static void add_blocks(RematState *state, int32_t first, int32_t end, int64_t bytes)
{
    if (first >= end)
        return;
    int64_t *pending = state->pending, *top = state->top, budget = state->budget, change = 0;
    for (int32_t block = first; block < end; block++) {
        int64_t before = top[block] - budget, after = before + bytes;
        pending[block] += bytes;
        top[block] += bytes;
        change += (after > 0 ? after : 0) - (before > 0 ? before : 0);
    }
    state->penalty += change;
    state->ticks += (uint64_t)(end - first) / BLOCKS_PER_TICK;
}

/* Adds to the slots from..to, both included; an empty range does nothing. */
static void add_range(RematState *state, int32_t from, int32_t to, int64_t bytes)
{
    if (from > to || !bytes)
        return;
    int32_t shift = state->block_shift, first = from >> shift, last = to >> shift;
    if (first == last) {
        add_within(state, first, from, to, bytes);
        return;
    }
    add_within(state, first, from, ((first + 1) << shift) - 1, bytes);
    add_blocks(state, first + 1, last, bytes);
    add_within(state, last, last << shift, to, bytes);
}

int64_t remat_state_peak(const RematState *state)
{
    int64_t peak = 0;
    for (int32_t block = 0; block < state->blocks; block++)
        peak = state->top[block] > peak ? state->top[block] : peak;
    return peak;
}

void remat_set_budget(RematState *state, int64_t budget)
{
    state->budget = budget;
    state->penalty = 0;
    for (int32_t block = 0; block < state->blocks; block++)
        state->penalty += excess(state, state->top[block]);
}

/* ---- events ---- */

void remat_list_insert(RematState *state, RematEvents *list, int32_t index, int32_t item)
{
    if (list->count == list->capacity) {
        int32_t capacity = list->capacity ? 2 * list->capacity : 4;
        int32_t *at = ARENA_ARRAY(state->arena, int32_t, (size_t)capacity);
        if (list->count)
            memcpy(at, list->at, (size_t)list->count * sizeof *at);
        list->at = at;
        list->capacity = capacity;
    }
    memmove(list->at + index + 1, list->at + index,
            (size_t)(list->count - index) * sizeof *list->at);
    list->at[index] = item;
    list->count++;
}

static void list_remove(RematEvents *list, int32_t index)
{
    list->count--;
    memmove(list->at + index, list->at + index + 1,
            (size_t)(list->count - index) * sizeof *list->at);
}

/* A value is bad when its first event is not its making, or something follows its killing. */
int remat_is_bad(const RematState *state, int32_t value)
{
    const RematEvents *list = &state->events[value];
    if (!list->count)
        return 0;
    if (state->model->producer[value] >= 0 && event_kind(list->at[0]) != EVENT_MADE)
        return 1;
    return list->kills > (event_kind(list->at[list->count - 1]) == EVENT_KILL);
}

static bool read_follows(const RematEvents *list, int32_t index)
{
    return index < list->count && event_kind(list->at[index]) != EVENT_MADE;
}

/* Bytes that an event at `slot` brings, given its place in the list without it. */
static void add_event(RematState *state, int32_t value, int32_t index, int32_t slot, int kind,
                      int64_t sign)
{
    const RematEvents *list = &state->events[value];
    int64_t bytes = sign * state->model->size[value];
    int32_t before = index ? event_slot(list->at[index - 1]) : -1;
    if (kind != EVENT_MADE) {
        if (!read_follows(list, index))
            add_range(state, before + 1, slot, bytes);
    } else if (read_follows(list, index)) {
        add_range(state, before + 1, slot - 1, -bytes);
    } else {
        add_range(state, slot, slot, bytes);
    }
}

/* ---- in place, and values that must not be stored across a node ---- */

static bool dies_at(const RematState *state, int32_t value, int32_t slot)
{
    const RematEvents *list = &state->events[value];
    int32_t i = remat_event_index(list, slot);
    return i < list->count && event_slot(list->at[i]) == slot && !read_follows(list, i + 1);
}

static bool lives_across(const RematState *state, int32_t value, int32_t slot)
{
    const RematEvents *list = &state->events[value];
    int32_t i = remat_event_index(list, slot);
    if (i < list->count && event_slot(list->at[i]) == slot)
        i++;
    return i && read_follows(list, i);
}

/* Pairs in their order: one counts when its input dies here and neither half is in an earlier
 * pair that counted. */
static int64_t saving(const RematState *state, int32_t slot)
{
    const RematModel *model = state->model;
    int32_t x = state->at[slot], first = model->overlays.start[x];
    int64_t saved = 0;
    uint64_t counted = 0;
    for (int32_t i = first; i < model->overlays.start[x + 1]; i++) {
        const RematInPlace *pair = &model->problem->in_place[model->overlays.item[i]];
        bool taken = false;
        for (uint64_t left = counted; left && !taken; left &= left - 1) {
            const int32_t j = first + __builtin_ctzll(left);
            const RematInPlace *earlier = &model->problem->in_place[model->overlays.item[j]];
            taken = earlier->output == pair->output || earlier->input == pair->input;
        }
        taken = taken || !dies_at(state, (int32_t)pair->input, slot);
        if (taken)
            continue;
        counted |= (uint64_t)1 << (i - first);
        saved += model->size[pair->output];
    }
    for (int32_t i = model->drops.start[x]; i < model->drops.start[x + 1]; i++)
        if (lives_across(state, model->drops.item[i], slot))
            saved -= HINT_WEIGHT;
    return saved;
}

static bool has_savings(const RematModel *model, int32_t x)
{
    return model->overlays.start[x] < model->overlays.start[x + 1] ||
           model->drops.start[x] < model->drops.start[x + 1];
}

void remat_refresh(RematState *state, int32_t slot)
{
    if (slot < 0 || slot >= state->slots || state->at[slot] < 0)
        return;
    if (!has_savings(state->model, state->at[slot]))
        return;
    int64_t saved = saving(state, slot);
    add_range(state, slot, slot, state->saved[slot] - saved);
    state->saved[slot] = saved;
}

/* Nodes that a watched value must not be stored across, after its event list changed. */
static void refresh_dropped(RematState *state, int32_t value)
{
    const RematModel *model = state->model;
    for (int32_t i = model->dropped.start[value]; i < model->dropped.start[value + 1]; i++) {
        const RematEvents *runs = &state->runs[model->dropped.item[i]];
        for (int32_t j = 0; j < runs->count; j++)
            remat_refresh(state, event_slot(runs->at[j]));
    }
}

/* After an event came or went at `index`: the value may die at the event before it, or no longer.
 * The slot of the event itself is refreshed when all events there are in place. */
static void refresh_before(RematState *state, int32_t value, int32_t index)
{
    if (index)
        remat_refresh(state, event_slot(state->events[value].at[index - 1]));
    refresh_dropped(state, value);
}

/* ---- one event of one value ---- */

static void event_insert(RematState *state, int32_t value, int32_t slot, int kind)
{
    RematEvents *list = &state->events[value];
    int32_t index = remat_event_index(list, slot);
    state->ticks++;
    state->bad -= remat_is_bad(state, value);
    add_event(state, value, index, slot, kind, 1);
    remat_list_insert(state, list, index, slot << 2 | kind);
    list->kills += kind == EVENT_KILL;
    state->bad += remat_is_bad(state, value);
    if (state->model->watched[value])
        refresh_before(state, value, index);
}

static void event_remove(RematState *state, int32_t value, int32_t slot)
{
    RematEvents *list = &state->events[value];
    int32_t index = remat_event_index(list, slot), kind = event_kind(list->at[index]);
    state->ticks++;
    state->bad -= remat_is_bad(state, value);
    list_remove(list, index);
    list->kills -= kind == EVENT_KILL;
    add_event(state, value, index, slot, kind, -1);
    state->bad += remat_is_bad(state, value);
    if (state->model->watched[value])
        refresh_before(state, value, index);
}

/* If no other event of the value is in between, only the end of one life moves. */
static void event_shift(RematState *state, int32_t value, int32_t from, int32_t to)
{
    RematEvents *list = &state->events[value];
    int32_t index = remat_event_index(list, from), kind = event_kind(list->at[index]);
    bool near = to > from ? index + 1 == list->count || event_slot(list->at[index + 1]) > to
                          : !index || event_slot(list->at[index - 1]) < to;
    if (!near) {
        event_remove(state, value, from);
        event_insert(state, value, to, kind);
        return;
    }
    state->ticks++;
    int64_t bytes = state->model->size[value];
    bool read = read_follows(list, index + 1);
    list->at[index] = to << 2 | kind;
    if (kind != EVENT_MADE && !read) {
        add_range(state, from + 1, to, bytes);
        add_range(state, to + 1, from, -bytes);
    } else if (kind == EVENT_MADE && read) {
        add_range(state, from, to - 1, -bytes);
        add_range(state, to, from - 1, bytes);
    } else if (kind == EVENT_MADE) {
        add_range(state, from, from, -bytes);
        add_range(state, to, to, bytes);
    }
    if (state->model->watched[value])
        refresh_dropped(state, value);
}

/* ---- occurrences ---- */

static void clear_saving(RematState *state, int32_t slot)
{
    add_range(state, slot, slot, state->saved[slot]);
    state->saved[slot] = 0;
}

static void set_repeated(RematState *state, int32_t x, bool repeated)
{
    if (repeated) {
        state->repeated_index[x] = state->repeats;
        state->repeated[state->repeats++] = x;
    } else {
        int32_t last = state->repeated[--state->repeats];
        state->repeated[state->repeated_index[x]] = last;
        state->repeated_index[last] = state->repeated_index[x];
    }
}

static void do_insert(RematState *state, int32_t x, int32_t slot)
{
    const RematModel *model = state->model;
    RematEvents *runs = &state->runs[x];
    state->at[slot] = x;
    state->length++;
    if (runs->count)
        state->extra += model->cost[x];
    if (runs->count == 1)
        set_repeated(state, x, true);
    remat_list_insert(state, runs, remat_event_index(runs, slot), slot << 2);
    add_range(state, slot, slot, FREE_SLOT + model->workspace[x]);
    for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++)
        event_insert(state, model->writes.item[i], slot, EVENT_MADE);
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
        event_insert(state, model->reads.item[i], slot, EVENT_READ);
    for (int32_t i = model->kills.start[x]; i < model->kills.start[x + 1]; i++)
        event_insert(state, model->kills.item[i], slot, EVENT_KILL);
    remat_refresh(state, slot);
}

static void do_remove(RematState *state, int32_t slot)
{
    const RematModel *model = state->model;
    int32_t x = state->at[slot];
    RematEvents *runs = &state->runs[x];
    clear_saving(state, slot);
    state->at[slot] = -1;
    state->length--;
    for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++)
        event_remove(state, model->writes.item[i], slot);
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
        event_remove(state, model->reads.item[i], slot);
    for (int32_t i = model->kills.start[x]; i < model->kills.start[x + 1]; i++)
        event_remove(state, model->kills.item[i], slot);
    add_range(state, slot, slot, -FREE_SLOT - model->workspace[x]);
    list_remove(runs, remat_event_index(runs, slot));
    if (runs->count)
        state->extra -= model->cost[x];
    if (runs->count == 1)
        set_repeated(state, x, false);
}

static void do_shift(RematState *state, int32_t from, int32_t to)
{
    const RematModel *model = state->model;
    int32_t x = state->at[from];
    RematEvents *runs = &state->runs[x];
    clear_saving(state, from);
    state->at[from] = -1;
    state->at[to] = x;
    list_remove(runs, remat_event_index(runs, from));
    remat_list_insert(state, runs, remat_event_index(runs, to), to << 2);
    add_range(state, from, from, -FREE_SLOT - model->workspace[x]);
    add_range(state, to, to, FREE_SLOT + model->workspace[x]);
    for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++)
        event_shift(state, model->writes.item[i], from, to);
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
        event_shift(state, model->reads.item[i], from, to);
    for (int32_t i = model->kills.start[x]; i < model->kills.start[x + 1]; i++)
        event_shift(state, model->kills.item[i], from, to);
    remat_refresh(state, to);
}

/* ---- edits with a journal ---- */

void remat_insert(RematState *state, int32_t node, int32_t slot)
{
    ARRAY_PUSH(state->arena, &state->journal, (RematEdit){node, -1, slot});
    do_insert(state, node, slot);
}

void remat_remove(RematState *state, int32_t slot)
{
    ARRAY_PUSH(state->arena, &state->journal, (RematEdit){state->at[slot], slot, -1});
    do_remove(state, slot);
}

void remat_shift(RematState *state, int32_t from, int32_t to)
{
    ARRAY_PUSH(state->arena, &state->journal, (RematEdit){state->at[from], from, to});
    do_shift(state, from, to);
}

void remat_undo(RematState *state)
{
    while (state->journal.count) {
        RematEdit edit = state->journal.at[--state->journal.count];
        if (edit.from < 0)
            do_remove(state, edit.to);
        else if (edit.to < 0)
            do_insert(state, edit.node, edit.from);
        else
            do_shift(state, edit.to, edit.from);
    }
}

void remat_commit(RematState *state)
{
    for (size_t i = 0; i < state->journal.count; i++)
        ARRAY_PUSH(state->arena, &state->log, state->journal.at[i]);
    state->journal.count = 0;
}
