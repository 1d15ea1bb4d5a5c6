/* First fit or best fit along time, as an allocator would meet the buffers, but outwards from the
 * peak: what is alive there is stacked without a hole, then one sweep goes right and another left,
 * each seeing only what is alive at the section it has reached. Near linear, so it serves the
 * largest problems.
 */
#include "planner/pack/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Pack *pack;
    Gaps *gaps;
    uint32_t *piece; /* item -> what it holds of the gaps */
    uint64_t *offset;
    bool best;                /* fit; otherwise first fit */
    uint32_t *born, *born_at; /* items by first section; where each section's begin */
    uint32_t *dead, *dead_at; /* items by last section */
} Sweep;

/* Items by a section of theirs, within a section by rank. */
static void index_by(const Model *model, const uint32_t *order, bool last, uint32_t *list,
                     uint32_t *at)
{
    memset(at, 0, ((size_t)model->sections + 2) * sizeof *at);
    for (uint32_t i = 0; i < model->count; i++)
        at[(last ? model->item[i].last : model->item[i].first) + 2]++;
    for (uint32_t s = 2; s < model->sections + 2; s++)
        at[s] += at[s - 1];
    for (uint32_t i = 0; i < model->count; i++) {
        const Item *item = &model->item[order[i]];
        list[at[(last ? item->last : item->first) + 1]++] = order[i];
    }
}

static bool take(Sweep *sweep, uint32_t i)
{
    const Model *model = sweep->pack->model;
    const Item *item = &model->item[i];
    sweep->piece[i] =
        gaps_take(sweep->gaps, item->size, item->align, model->unit, &sweep->offset[i]);
    return sweep->piece[i] != 0;
}

/* What is alive at the middle, again into empty gaps: the same offsets both times. */
static bool stack(Sweep *sweep, const uint32_t *order, uint32_t middle)
{
    const Model *model = sweep->pack->model;
    gaps_clear(sweep->gaps, sweep->best);
    for (uint32_t i = 0; i < model->count; i++) {
        const Item *item = &model->item[order[i]];
        if (item->first <= middle && item->last >= middle && !take(sweep, order[i]))
            return false;
    }
    return true;
}

static bool go_right(Sweep *sweep, uint32_t middle)
{
    for (uint32_t s = middle + 1; s < sweep->pack->model->sections; s++) {
        for (uint32_t k = sweep->dead_at[s - 1]; k < sweep->dead_at[s]; k++)
            gaps_give(sweep->gaps, sweep->piece[sweep->dead[k]]);
        for (uint32_t k = sweep->born_at[s]; k < sweep->born_at[s + 1]; k++)
            if (!take(sweep, sweep->born[k]))
                return false;
    }
    return true;
}

static bool go_left(Sweep *sweep, uint32_t middle)
{
    for (uint32_t s = middle; s-- > 0;) {
        for (uint32_t k = sweep->born_at[s + 1]; k < sweep->born_at[s + 2]; k++)
            gaps_give(sweep->gaps, sweep->piece[sweep->born[k]]);
        for (uint32_t k = sweep->dead_at[s]; k < sweep->dead_at[s + 1]; k++)
            if (!take(sweep, sweep->dead[k]))
                return false;
    }
    return true;
}

static void sweep_from(Sweep *sweep, const uint32_t *order, uint32_t middle)
{
    const Model *model = sweep->pack->model;
    index_by(model, order, false, sweep->born, sweep->born_at);
    index_by(model, order, true, sweep->dead, sweep->dead_at);
    if (stack(sweep, order, middle) && go_right(sweep, middle) && stack(sweep, order, middle) &&
        go_left(sweep, middle))
        pack_offer(sweep->pack, sweep->offset);
    uint64_t logarithm = 1;
    while (model->count >> logarithm)
        logarithm++;
    pack_spend(sweep->pack, 4 * logarithm * model->count);
}

void pack_sweep(Pack *pack)
{
    enum { PEAK, BEGIN, END };
    static const struct {
        PackOrder by;
        bool best;
        int from;
    } plan[] = {{BY_WIDTH, true, PEAK},
                {BY_WIDTH, true, END},
                {BY_WIDTH, true, BEGIN},
                {BY_SIZE, true, PEAK},
                {BY_WIDTH, false, PEAK}};
    const Model *model = pack->model;
    if (model->any_fixed || !model->count)
        return;
    Arena *arena = arena_new();
    Sweep sweep = {.pack = pack, .gaps = gaps_new(arena, model->count)};
    sweep.piece = ARENA_ARRAY(arena, uint32_t, model->count);
    sweep.offset = ARENA_ARRAY(arena, uint64_t, model->count);
    sweep.born = ARENA_ARRAY(arena, uint32_t, model->count);
    sweep.dead = ARENA_ARRAY(arena, uint32_t, model->count);
    sweep.born_at = ARENA_ARRAY(arena, uint32_t, (size_t)model->sections + 2);
    sweep.dead_at = ARENA_ARRAY(arena, uint32_t, (size_t)model->sections + 2);
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, model->count), peak = 0;
    for (uint32_t s = 0; s < model->sections; s++)
        if (model->load[s] > model->load[peak])
            peak = s;
    const uint32_t from[] = {[PEAK] = peak, [BEGIN] = 0, [END] = model->sections - 1};
    for (size_t k = 0; k < sizeof plan / sizeof *plan && !pack_done(pack); k++) {
        sweep.best = plan[k].best;
        pack_order(model, plan[k].by, order);
        sweep_from(&sweep, order, from[plan[k].from]);
        if (!pack_spend(pack, 0))
            break;
    }
    arena_free(arena);
}
