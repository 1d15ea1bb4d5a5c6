/* The search as a whole: initial orders, then rounds of annealing until the effort is spent.
 *
 * Where the effort allows many rounds, they alternate between a fresh start (another order,
 * another recipe) and the best schedule known, warmed up again: random graphs have many basins.
 * Where it does not, as on large graphs, one long round takes most of it. */
#include "planner/remat/internal.h"

#include "frontend/base/clock.h"

#include <string.h>

enum {
    TICKS_PER_EVENT = 8000, /* of the first round, for each read and write of the problem */
    OCCURRENCES_PER_NODE = 4,
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const RematRecipe fresh[] = {
    {1.5, 0.002, 0.1, 5}, {5, 0.002, 0.03, 12},  {1.5, 0.002, 0.3, 5},
    {5, 0.002, 0.1, 12},  {1.5, 0.002, 0.03, 5}, {5, 0.002, 0.3, 12},
};
static const RematRecipe again[] = {
    {0.2, 0.002, 0.2, 8},
    {0.6, 0.002, 0.2, 8},
    {1.5, 0.002, 0.1, 8},
};
static const RematRecipe long_round = {1, 0.002, 0.01, 6};

static uint64_t first_length(const RematSearch *search)
{
    const RematModel *model = search->model;
    uint64_t events = (uint64_t)model->reads.start[model->nodes];
    events += (uint64_t)model->writes.start[model->nodes];
    return (events + 1) * TICKS_PER_EVENT;
}

static void start_fresh(RematSearch *search, RematSchedule *order, size_t choice)
{
    const RematOptions *options = search->options;
    choice %= REMAT_ORDERS + options->starts;
    if (choice < options->starts) {
        remat_load(search, &options->start[choice]);
        return;
    }
    RematSchedule *from = &order[choice - options->starts];
    if (!from->count)
        *from = remat_order(search->model, (int)(choice - options->starts), search->arena);
    remat_load(search, from);
}

/* Something to show when nothing fits. */
static void note_nearest(RematSearch *search)
{
    const RematState *state = search->state;
    int64_t peak = remat_state_peak(state);
    if (search->fits || state->bad || (search->nearest.count && peak >= search->nearest_peak))
        return;
    search->nearest_peak = peak;
    search->nearest =
        (RematSchedule){ARENA_ARRAY(search->arena, RematId, (size_t)state->length), 0};
    for (int32_t i = 0; i < state->slots; i++)
        if (state->at[i] >= 0)
            search->nearest.node[search->nearest.count++] = (RematId)state->at[i];
}

static uint64_t at_most_left(const RematSearch *search, uint64_t ticks)
{
    uint64_t done = search->state->ticks, total = search->ticks_total;
    uint64_t left = total > done ? total - done : 0;
    return ticks < left ? ticks : left;
}

static void run_rounds(RematSearch *search)
{
    RematState *state = search->state;
    RematSchedule order[REMAT_ORDERS] = {0};
    uint64_t length = first_length(search);
    size_t starts = 0, warmed = 0;
    bool brief = search->ticks_total / 4 < length;
    if (search->ticks_total < length / 4)
        search->mover.order_share = 12;
    for (int round = 0; !search->stopped && state->ticks < search->ticks_total; round++) {
        const RematRecipe *recipe;
        uint64_t ticks = brief ? search->ticks_total / 5 : length;
        remat_write_best(search);
        if (search->fits && (brief || round % 2)) {
            recipe = &again[warmed++ % COUNT(again)];
            remat_load(search, &search->best);
        } else {
            recipe = brief ? &long_round : &fresh[starts % COUNT(fresh)];
            start_fresh(search, order, starts++);
            ticks = brief ? search->ticks_total / 5 * 3 : ticks;
        }
        note_nearest(search);
        remat_anneal(search, recipe, at_most_left(search, ticks));
        note_nearest(search);
        if (round % 4 == 3)
            length += length / 2;
    }
}

static RematSearch begin(const RematProblem *problem, const RematOptions *options)
{
    RematSearch search = {.options = options, .arena = arena_new(), .begin = clock_seconds()};
    uint64_t effort = options->effort ? options->effort : REMAT_DEFAULT_EFFORT;
    search.ticks_total = effort < UINT64_MAX / REMAT_TICKS ? effort * REMAT_TICKS : UINT64_MAX;
    search.model = remat_model(problem, search.arena);
    search.state = remat_state(search.model, options->budget - problem->base, search.arena);
    search.mover = (RematMover){.state = search.state, .random = {options->seed}};
    search.mover.order_share = 56;
    search.mover.limit = OCCURRENCES_PER_NODE * search.model->nodes + 64;
    remat_anneal_begin(&search);
    return search;
}

static RematResult end(RematSearch *search, Arena *arena)
{
    int64_t base = search->model->problem->base;
    remat_write_best(search);
    const RematSchedule *best = search->fits ? &search->best : &search->nearest;
    RematResult result = {
        .schedule = {ARENA_ARRAY(arena, RematId, best->count), best->count},
        .fits = search->fits,
        .stop = search->stop,
        .floor = search->floor + base,
        .base_cost = search->base_cost,
        .bound = remat_cost(search, search->bound),
        .effort = search->state->ticks / REMAT_TICKS,
    };
    if (best->count)
        memcpy(result.schedule.node, best->node, best->count * sizeof *best->node);
    RematValuation valuation = remat_evaluate(search->model->problem, &result.schedule);
    result.peak = valuation.peak;
    result.cost = valuation.cost;
    arena_free(search->arena);
    return result;
}

RematResult remat_solve(const RematProblem *problem, const RematOptions *options, Arena *arena)
{
    RematSearch search = begin(problem, options);
    if (options->no_bound)
        search.floor = remat_largest_step(search.model);
    else
        search.bound = remat_find_bounds(search.model, search.state->budget, &search.floor);
    if (search.state->budget < search.floor) {
        search.stop = REMAT_HOPELESS;
        search.bound = 0;
        search.ticks_total = 1;
    }
    run_rounds(&search);
    return end(&search, arena);
}

RematResult remat_minimize(const RematProblem *problem, const RematOptions *options, Arena *arena)
{
    RematSearch search = begin(problem, options);
    if (options->no_bound)
        search.floor = remat_largest_step(search.model);
    else
        remat_find_bounds(search.model, -1, &search.floor);
    search.shrink = true;
    run_rounds(&search);
    return end(&search, arena);
}
