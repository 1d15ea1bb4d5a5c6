/* Laying a sequence out in slots: builds the event lists and the profile in linear time. */
#include "planner/remat/internal.h"

#include <string.h>

enum { SPARE_SLOTS = 64 };

/* Blocks small enough to place a peak, large enough that long ranges stay cheap. */
static int32_t pick_shift(size_t slots)
{
    int32_t shift = 2;
    while (shift < 7 && slots >> (2 * shift + 3))
        shift++;
    return shift;
}

/* Twice the slots that are needed, up to a rounding: about every second slot is free. */
static void size_slots(RematState *state, size_t count)
{
    size_t wanted = 2 * count + SPARE_SLOTS;
    state->block_shift = pick_shift(wanted);
    size_t block = (size_t)1 << state->block_shift, slots = (wanted + block - 1) / block * block;
    if (slots > state->capacity) {
        state->capacity = slots + slots / 4;
        state->at = ARENA_ARRAY(state->arena, int32_t, state->capacity);
        state->live = ARENA_ARRAY(state->arena, int64_t, state->capacity);
        state->saved = ARENA_ARRAY(state->arena, int64_t, state->capacity);
        state->top = ARENA_ARRAY(state->arena, int64_t, state->capacity);
        state->pending = ARENA_ARRAY(state->arena, int64_t, state->capacity);
    }
    state->slots = (int32_t)slots;
    state->blocks = (int32_t)(slots / block);
}

static void clear(RematState *state)
{
    const RematModel *model = state->model;
    for (int32_t v = 0; v < model->values; v++)
        state->events[v].count = state->events[v].kills = 0;
    for (int32_t x = 0; x < model->nodes; x++)
        state->runs[x].count = 0;
    for (int32_t i = 0; i < state->slots; i++) {
        state->at[i] = -1;
        state->live[i] = state->saved[i] = 0;
    }
    memset(state->pending, 0, (size_t)state->blocks * sizeof *state->pending);
    state->penalty = state->extra = 0;
    state->length = state->bad = state->repeats = 0;
    state->journal.count = state->log.count = 0;
}

static void append(RematState *state, RematEvents *list, int32_t item)
{
    remat_list_insert(state, list, list->count, item);
}

static void place(RematState *state, int32_t x, int32_t slot)
{
    const RematModel *model = state->model;
    RematEvents *runs = &state->runs[x];
    state->at[slot] = x;
    state->length++;
    if (runs->count)
        state->extra += model->cost[x];
    if (runs->count == 1) {
        state->repeated_index[x] = state->repeats;
        state->repeated[state->repeats++] = x;
    }
    append(state, runs, slot << 2);
    for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++)
        append(state, &state->events[model->writes.item[i]], slot << 2 | EVENT_MADE);
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++)
        append(state, &state->events[model->reads.item[i]], slot << 2 | EVENT_READ);
    for (int32_t i = model->kills.start[x]; i < model->kills.start[x + 1]; i++) {
        RematEvents *events = &state->events[model->kills.item[i]];
        append(state, events, slot << 2 | EVENT_KILL);
        events->kills++;
    }
}

/* Adds the lives of one value to `live`, as differences. */
static void mark_lives(RematState *state, int32_t value)
{
    const RematEvents *list = &state->events[value];
    int64_t bytes = state->model->size[value];
    for (int32_t i = 0, next; i < list->count; i = next) {
        int32_t from = event_slot(list->at[i]);
        if (event_kind(list->at[i]) != EVENT_MADE)
            from = 0; /* read before it was made: counts from the beginning */
        next = i + 1;
        while (next < list->count && event_kind(list->at[next]) != EVENT_MADE)
            next++;
        int32_t to = event_slot(list->at[next - 1]);
        state->live[from] += bytes;
        if (to + 1 < state->slots)
            state->live[to + 1] -= bytes;
    }
}

static void sum_profile(RematState *state)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < state->slots; i++) {
        sum += state->live[i];
        state->live[i] =
            sum + (state->at[i] < 0 ? -FREE_SLOT : state->model->workspace[state->at[i]]);
    }
    for (int32_t block = 0; block < state->blocks; block++)
        state->top[block] = remat_block_top(state, block);
}

void remat_layout(RematState *state, const RematId *node, size_t count)
{
    const RematModel *model = state->model;
    size_slots(state, count);
    clear(state);
    for (size_t i = 0; i < count; i++)
        place(state, (int32_t)node[i], (int32_t)((2 * i + 1) * (size_t)state->slots / (2 * count)));
    for (int32_t v = 0; v < model->values; v++) {
        if (model->output[v])
            append(state, &state->events[v], state->slots << 2 | EVENT_READ);
        mark_lives(state, v);
        state->bad += remat_is_bad(state, v);
    }
    sum_profile(state);
    remat_set_budget(state, state->budget);
    for (int32_t i = 0; i < state->slots; i++)
        remat_refresh(state, i);
    state->ticks += count;
}

RematState *remat_state(const RematModel *model, int64_t budget, Arena *arena)
{
    RematState *state = ARENA_NEW(arena, RematState);
    state->model = model;
    state->arena = arena;
    state->budget = budget;
    state->events = ARENA_ARRAY(arena, RematEvents, (size_t)model->values);
    state->runs = ARENA_ARRAY(arena, RematEvents, (size_t)model->nodes);
    state->repeated = ARENA_ARRAY(arena, int32_t, (size_t)model->nodes);
    state->repeated_index = ARENA_ARRAY(arena, int32_t, (size_t)model->nodes);
    return state;
}
