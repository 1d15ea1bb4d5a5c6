/* The moves of the search. Each proposes an edit near a random place; most keep the schedule
 * valid by construction, and the caller undoes those that do not.
 *
 *   relocate  an occurrence goes elsewhere between its inputs and its readers
 *   gather    an occurrence goes before its inputs, which come along; or after its readers
 *   evict     a value idle over a peak is dropped and made again before its next read, with
 *             those of its inputs that are not at hand
 *   forget    a recomputation is removed, with the recomputations only it needed
 *   carry     a run of neighbours goes elsewhere together
 */
#include "planner/remat/internal.h"

enum { MAX_ALONG = 8, MAX_AGAIN = 8, TRIES = 24 };

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* ---- room ---- */

/* Frees the slot just before or at `slot`, sliding the fewest neighbours; -1 when full. The node
 * in `slot` may slide to the right. */
static int32_t open_before(RematState *state, int32_t slot)
{
    int32_t left = slot - 1, right = slot;
    while (left >= 0 || right < state->slots) {
        if (left >= 0 && state->at[left] < 0) {
            for (int32_t i = left + 1; i < slot; i++)
                remat_shift(state, i, i - 1);
            return slot - 1;
        }
        if (right < state->slots && state->at[right] < 0) {
            for (int32_t i = right; i > slot; i--)
                remat_shift(state, i - 1, i);
            return slot;
        }
        left--;
        right++;
    }
    return -1;
}

int32_t remat_lift(RematState *state, int32_t slot, int32_t *target)
{
    int32_t x = state->at[slot];
    remat_remove(state, slot);
    int32_t free = open_before(state, *target);
    remat_insert(state, x, free);
    *target += free == *target;
    return free;
}

/* ---- where an occurrence may be ---- */

static int32_t first_run(const RematState *state, int32_t x)
{
    return state->runs[x].count ? event_slot(state->runs[x].at[0]) : state->slots;
}

/* All inputs have been made, and nothing it overwrites is still to be read: after this slot. */
static int32_t earliest(const RematState *state, int32_t x)
{
    const RematModel *model = state->model;
    int32_t slot = -1;
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        int32_t producer = model->producer[model->reads.item[i]];
        if (producer >= 0)
            slot = most(slot, first_run(state, producer));
    }
    for (int32_t i = model->kills.start[x]; i < model->kills.start[x + 1]; i++) {
        const RematEvents *list = &state->events[model->kills.item[i]];
        for (int32_t j = list->count - 1; j >= 0; j--)
            if (event_kind(list->at[j]) != EVENT_KILL) {
                slot = most(slot, event_slot(list->at[j]));
                break;
            }
    }
    return slot;
}

/* Before this slot: the first reader, when this is the first run, and the killers of inputs. */
static int32_t latest(const RematState *state, int32_t x, int32_t slot)
{
    const RematModel *model = state->model;
    int32_t end = state->slots;
    if (first_run(state, x) == slot)
        for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++) {
            const RematEvents *list = &state->events[model->writes.item[i]];
            for (int32_t j = 0; j < list->count; j++)
                if (event_kind(list->at[j]) != EVENT_MADE) {
                    end = least(end, event_slot(list->at[j]));
                    break;
                }
        }
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        RematId killer = model->problem->value[model->reads.item[i]].killer;
        if (killer != REMAT_NONE)
            end = least(end, first_run(state, (int32_t)killer));
    }
    return end;
}

static int32_t random_occurrence(RematMover *mover)
{
    const RematState *state = mover->state;
    for (int try = 0; try < TRIES; try++) {
        int32_t slot = random_below(&mover->random, state->slots);
        if (state->at[slot] >= 0)
            return slot;
    }
    return -1;
}

/* ---- relocate ---- */

/* A distance of any magnitude up to `span`. */
static int32_t random_distance(RematMover *mover, int32_t span)
{
    int32_t bits = 1;
    while (bits < 30 && span >> bits)
        bits++;
    return 1 +
           random_below(&mover->random, least(span, 1 << (1 + random_below(&mover->random, bits))));
}

/* Next to another event of a value that x touches: where lives begin and end. */
static int32_t beside_event(RematMover *mover, int32_t x)
{
    const RematState *state = mover->state;
    const RematModel *model = state->model;
    int32_t reads = model->reads.start[x + 1] - model->reads.start[x];
    int32_t writes = model->writes.start[x + 1] - model->writes.start[x];
    if (reads + writes == 0)
        return -1;
    int32_t pick = random_below(&mover->random, reads + writes);
    int32_t value = pick < reads ? model->reads.item[model->reads.start[x] + pick]
                                 : model->writes.item[model->writes.start[x] + pick - reads];
    const RematEvents *list = &state->events[value];
    int32_t slot = event_slot(list->at[random_below(&mover->random, list->count)]);
    return slot + random_below(&mover->random, 2);
}

static int32_t pick_target(RematMover *mover, int32_t x, int32_t slot, int32_t low, int32_t high)
{
    uint32_t kind = random_bits(&mover->random) & 15;
    if (kind < 6) {
        int32_t distance = random_distance(mover, high - low);
        return random_bits(&mover->random) & 1 ? slot + distance : slot - distance;
    }
    if (kind < 10)
        return beside_event(mover, x);
    if (kind < 12)
        return low + 1;
    if (kind < 14)
        return high;
    return low + 1 + random_below(&mover->random, most(high - low - 1, 1));
}

/* Takes the occurrence at `slot` to just before `target`. */
static bool take_to(RematState *state, int32_t slot, int32_t target)
{
    if (target < state->slots && target >= 0 && state->at[target] < 0) {
        remat_shift(state, slot, target);
        return true;
    }
    if (target == slot || target == slot + 1)
        return false;
    remat_lift(state, slot, &target);
    return true;
}

static bool relocate(RematMover *mover)
{
    RematState *state = mover->state;
    int32_t slot = random_occurrence(mover);
    if (slot < 0)
        return false;
    int32_t x = state->at[slot];
    int32_t low = earliest(state, x), high = latest(state, x, slot);
    int32_t target = pick_target(mover, x, slot, low, high);
    if (target <= low)
        target = low + 1;
    if (target > high)
        target = high;
    if (target == slot)
        return false;
    return take_to(state, slot, target);
}

/* ---- gather ---- */

/* Brings the first run of x before *target, after those of its inputs that are not there yet. */
static bool bring_early(RematState *state, int32_t x, int32_t *target, int *along)
{
    const RematModel *model = state->model;
    if (++*along > MAX_ALONG)
        return false;
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        int32_t producer = model->producer[model->reads.item[i]];
        if (producer >= 0 && first_run(state, producer) >= *target &&
            !bring_early(state, producer, target, along))
            return false;
    }
    remat_lift(state, first_run(state, x), target);
    return true;
}

/* Brings the occurrence at `slot` before `target`, and moves the readers that it passed to after
 * it. */
static bool bring_late(RematState *state, int32_t slot, int32_t target, int *along)
{
    const RematModel *model = state->model;
    int32_t x = state->at[slot], run = remat_lift(state, slot, &target);
    if (++*along > MAX_ALONG)
        return false;
    for (int32_t i = model->writes.start[x]; i < model->writes.start[x + 1]; i++) {
        const RematEvents *list = &state->events[model->writes.item[i]];
        while (event_kind(list->at[0]) != EVENT_MADE) {
            if (!bring_late(state, event_slot(list->at[0]), run + 1, along))
                return false;
            run = event_slot(state->runs[x].at[0]);
        }
    }
    return true;
}

static bool gather(RematMover *mover)
{
    RematState *state = mover->state;
    int32_t slot = random_occurrence(mover);
    if (slot < 0)
        return false;
    int along = 0;
    int32_t distance = random_distance(mover, state->slots);
    if (random_bits(&mover->random) & 1) {
        int32_t target = most(slot - distance, 0);
        return bring_early(state, state->at[slot], &target, &along);
    }
    int32_t target = least(slot + distance, state->slots);
    return bring_late(state, slot, target, &along);
}

/* ---- evict ---- */

static bool may_run_at(const RematState *state, int32_t x, int32_t slot)
{
    const RematModel *model = state->model;
    if (model->once[x])
        return false;
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        RematId killer = model->problem->value[model->reads.item[i]].killer;
        if (killer != REMAT_NONE && first_run(state, (int32_t)killer) < slot)
            return false;
    }
    return true;
}

/* Runs x again before *slot; inputs that would have to be kept longer may be made again too. */
static bool run_again(RematMover *mover, int32_t x, int32_t *slot, int *again)
{
    RematState *state = mover->state;
    const RematModel *model = state->model;
    if (state->length >= mover->limit || !may_run_at(state, x, *slot))
        return false;
    --*again;
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        int32_t value = model->reads.item[i], producer = model->producer[value];
        if (producer < 0 || !model->size[value] || *again <= 0)
            continue;
        const RematEvents *list = &state->events[value];
        int32_t next = remat_event_index(list, *slot);
        bool at_hand = next < list->count && event_kind(list->at[next]) != EVENT_MADE;
        int32_t before = next ? event_slot(list->at[next - 1]) : -1;
        if (at_hand || *slot - before <= 4 || random_bits(&mover->random) & 1)
            continue;
        if (may_run_at(state, producer, *slot) && !run_again(mover, producer, slot, again))
            return false;
    }
    int32_t free = open_before(state, *slot);
    if (free < 0)
        return false;
    remat_insert(state, x, free);
    if (free == *slot)
        ++*slot;
    return true;
}

/* One half of the time 1, one quarter 2, and so on. */
static int few(RematMover *mover)
{
    int count = 1;
    for (uint64_t bits = random_bits(&mover->random); bits & 1 && count < MAX_AGAIN; bits >>= 1)
        count++;
    return count;
}

/* A slot in a block above the budget, or -1. */
static int32_t slot_above_budget(RematMover *mover)
{
    const RematState *state = mover->state;
    int32_t shift = state->block_shift;
    int32_t start = random_below(&mover->random, state->blocks);
    for (int32_t i = 0; i < state->blocks; i++) {
        int32_t block = (start + i) % state->blocks;
        if (state->top[block] <= state->budget)
            continue;
        for (int32_t slot = block << shift; slot < (block + 1) << shift; slot++)
            if (live_at(state, slot) > state->budget)
                return slot;
    }
    return -1;
}

/* The read that ends an idle range of `value` across the slot, or -1. */
static int32_t read_after_idle(const RematState *state, int32_t value, int32_t slot)
{
    const RematEvents *list = &state->events[value];
    int32_t i = remat_event_index(list, slot);
    if (!i || i == list->count || event_slot(list->at[i]) == slot)
        return -1;
    return event_kind(list->at[i]) != EVENT_MADE ? event_slot(list->at[i]) : -1;
}

static bool evict_at(RematMover *mover, int32_t slot)
{
    int again = few(mover);
    RematState *state = mover->state;
    const RematModel *model = state->model;
    for (int try = 0; try < TRIES; try++) {
        int32_t value = random_below(&mover->random, model->values);
        state->ticks += try & 1;
        if (!model->size[value] || model->producer[value] < 0)
            continue;
        int32_t read = read_after_idle(state, value, slot);
        if (read >= 0)
            return run_again(mover, model->producer[value], &read, &again);
    }
    return false;
}

static bool evict_anywhere(RematMover *mover)
{
    int again = few(mover);
    RematState *state = mover->state;
    const RematModel *model = state->model;
    for (int try = 0; try < TRIES; try++) {
        int32_t slot = random_occurrence(mover);
        if (slot < 0)
            return false;
        int32_t x = state->at[slot], reads = model->reads.start[x + 1] - model->reads.start[x];
        if (!reads)
            continue;
        int32_t value =
            model->reads.item[model->reads.start[x] + random_below(&mover->random, reads)];
        const RematEvents *list = &state->events[value];
        int32_t i = remat_event_index(list, slot);
        if (!i || slot - event_slot(list->at[i - 1]) <= 4 || model->producer[value] < 0)
            continue;
        return run_again(mover, model->producer[value], &slot, &again);
    }
    return false;
}

static bool evict(RematMover *mover)
{
    if (mover->state->penalty && random_bits(&mover->random) & 3) {
        int32_t slot = slot_above_budget(mover);
        if (slot >= 0)
            return evict_at(mover, slot);
    }
    return evict_anywhere(mover);
}

/* ---- forget ---- */

/* The occurrence of x whose values are no longer read, at or before `slot`, or -1. */
static int32_t idle_run_before(const RematState *state, int32_t x, int32_t slot)
{
    const RematModel *model = state->model;
    const RematEvents *runs = &state->runs[x];
    int32_t i = remat_event_index(runs, slot) - 1;
    if (runs->count < 2 || i < 0)
        return -1;
    int32_t run = event_slot(runs->at[i]);
    for (int32_t j = model->writes.start[x]; j < model->writes.start[x + 1]; j++) {
        const RematEvents *list = &state->events[model->writes.item[j]];
        int32_t k = remat_event_index(list, run) + 1;
        if (k < list->count && event_kind(list->at[k]) != EVENT_MADE)
            return -1;
    }
    return run;
}

static void forget_at(RematState *state, int32_t slot)
{
    const RematModel *model = state->model;
    int32_t x = state->at[slot];
    remat_remove(state, slot);
    for (int32_t i = model->reads.start[x]; i < model->reads.start[x + 1]; i++) {
        int32_t producer = model->producer[model->reads.item[i]];
        if (producer < 0)
            continue;
        int32_t run = idle_run_before(state, producer, slot);
        if (run >= 0)
            forget_at(state, run);
    }
}

static bool forget(RematMover *mover)
{
    RematState *state = mover->state;
    if (!state->repeats)
        return false;
    int32_t x = state->repeated[random_below(&mover->random, state->repeats)];
    const RematEvents *runs = &state->runs[x];
    forget_at(state, event_slot(runs->at[random_below(&mover->random, runs->count)]));
    return true;
}

/* ---- carry ---- */

static bool carry(RematMover *mover)
{
    RematState *state = mover->state;
    int32_t slot = random_occurrence(mover);
    if (slot < 0)
        return false;
    int32_t count = 2 + random_below(&mover->random, 7);
    int32_t distance = random_distance(mover, state->slots);
    bool later = random_bits(&mover->random) & 1;
    int32_t moved[16] = {slot}, n = 1;
    for (int32_t i = slot + 1; n < count && i < state->slots; i++)
        if (state->at[i] >= 0)
            moved[n++] = i;
    int32_t target =
        later ? least(moved[n - 1] + distance, state->slots) : most(slot - distance, 0);
    int32_t node[16];
    for (int32_t i = 0; i < n; i++) {
        node[i] = state->at[moved[i]];
        remat_remove(state, moved[i]);
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t free = open_before(state, target);
        remat_insert(state, node[i], free);
        if (free == target)
            target++;
    }
    return true;
}

bool remat_move(RematMover *mover)
{
    if (random_below(&mover->random, 100) < mover->order_share) {
        int32_t kind = random_below(&mover->random, 100);
        return kind < 92 ? relocate(mover) : kind < 98 ? gather(mover) : carry(mover);
    }
    return random_below(&mover->random, 100) < 55 ? evict(mover) : forget(mover);
}
