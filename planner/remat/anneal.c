/* Annealing over schedules: extra cost plus a price on the bytes above the budget.
 *
 * The price moves: while the schedule fits it falls, while it does not it rises, so the search
 * swings about the border of what fits, where the good schedules are. Effort is counted in events
 * touched, so the same problem gives the same answer on every machine. */
#include "planner/remat/internal.h"

#include "frontend/base/clock.h"

#include <string.h>

enum {
    STEPS_PER_CHECK = 128,    /* moves between looks at temperature and price */
    TICKS_PER_TELL = 1 << 14, /* between looks at the clock and the caller */
    LOG_LIMIT = 1 << 18,      /* edits before the schedule is laid out anew */
};

/* ---- the clock and the caller ---- */

double remat_cost(const RematSearch *search, int64_t extra)
{
    return search->base_cost + search->base_cost * ((double)extra / (double)COST_ONE);
}

static void stop_with(RematSearch *search, RematStop stop)
{
    search->stopped = true;
    search->stop = stop;
}

static void tell(RematSearch *search)
{
    const RematOptions *options = search->options;
    double seconds = clock_seconds() - search->begin;
    if (options->cancel && *options->cancel)
        stop_with(search, REMAT_CANCELLED);
    else if (options->seconds > 0 && seconds >= options->seconds)
        stop_with(search, REMAT_TIMED_OUT);
    if (!options->progress)
        return;
    RematProgress progress = {
        .seconds = seconds,
        .effort = search->state->ticks / REMAT_TICKS,
        .total = search->ticks_total / REMAT_TICKS,
        .fits = search->fits,
        .cost = remat_cost(search, search->best_extra),
        .bound = remat_cost(search, search->bound),
        .peak = search->best_peak + search->model->problem->base,
    };
    if (!options->progress(&progress, options->data))
        stop_with(search, REMAT_CANCELLED);
}

/* ---- keeping the best ----
 *
 * A schedule is long and the best improves often, so it is kept as a place in the log of edits
 * and written out only when the log is about to be lost. */

static void keep_start(RematSearch *search)
{
    RematState *state = search->state;
    size_t slots = (size_t)state->slots;
    if (slots > search->kept_capacity) {
        search->kept_capacity = slots + slots / 2;
        search->kept = ARENA_ARRAY(search->arena, RematId, search->kept_capacity);
    }
    memcpy(search->kept, state->at, slots * sizeof *search->kept);
    search->kept_slots = slots;
    state->log.count = 0;
    search->marked = false;
}

void remat_write_best(RematSearch *search)
{
    if (!search->marked)
        return;
    const RematEdit *log = search->state->log.at;
    for (size_t i = 0; i < search->mark; i++) {
        if (log[i].from >= 0)
            search->kept[log[i].from] = REMAT_NONE;
        if (log[i].to >= 0)
            search->kept[log[i].to] = (RematId)log[i].node;
    }
    if (search->kept_slots > search->best_capacity) {
        search->best_capacity = search->kept_slots + search->kept_slots / 2;
        search->best.node = ARENA_ARRAY(search->arena, RematId, search->best_capacity);
    }
    search->best.count = 0;
    for (size_t i = 0; i < search->kept_slots; i++)
        if (search->kept[i] != REMAT_NONE)
            search->best.node[search->best.count++] = search->kept[i];
    search->marked = false;
}

static bool is_better(const RematSearch *search)
{
    const RematState *state = search->state;
    if (state->penalty || state->bad)
        return false;
    return search->shrink || !search->fits || state->extra < search->best_extra;
}

static void note_best(RematSearch *search)
{
    RematState *state = search->state;
    search->fits = search->marked = true;
    search->mark = state->log.count;
    search->best_extra = state->extra;
    search->best_peak = remat_state_peak(state);
    if (search->shrink ? search->best_peak <= search->floor : state->extra <= search->bound) {
        stop_with(search, REMAT_PROVED);
    } else if (search->shrink) {
        int64_t step = (search->best_peak - search->floor) / 256;
        remat_set_budget(state, search->best_peak - (step > 1 ? step : 1));
    }
}

void remat_load(RematSearch *search, const RematSchedule *schedule)
{
    remat_write_best(search);
    remat_layout(search->state, schedule->node, schedule->count);
    keep_start(search);
    if (search->shrink && !search->fits)
        remat_set_budget(search->state, INT64_MAX / 4);
    if (is_better(search))
        note_best(search);
}

/* Spreads the current schedule evenly again. */
static void respread(RematSearch *search)
{
    RematState *state = search->state;
    remat_write_best(search);
    RematSchedule now = {search->kept, 0};
    for (int32_t i = 0; i < state->slots; i++)
        if (state->at[i] >= 0)
            now.node[now.count++] = (RematId)state->at[i];
    remat_layout(state, now.node, now.count);
    keep_start(search);
}

/* ---- annealing ---- */

/* By the series of artanh, so that no libm is involved. */
static double minus_log(double y)
{
    int halvings = 0;
    for (; y < 0.5; halvings++)
        y *= 2;
    double z = (y - 1) / (y + 1), power = z, sum = 0;
    for (int k = 1; k < 60; k += 2) {
        sum += power / k;
        power *= z * z;
    }
    return halvings * 0.693147180559945309417 - 2 * sum;
}

static double minus_exp(double x) /* e^-x for x >= 0, the same way */
{
    double result = 1, term = 1, sum = 1;
    for (; x > 0.5; x -= 0.5)
        result *= 0.60653065971263342;
    for (int k = 1; k < 12; k++)
        sum += term *= -x / k;
    return result * sum;
}

static void step(RematSearch *search, double temperature)
{
    RematState *state = search->state;
    int64_t penalty = state->penalty, extra = state->extra;
    state->ticks++;
    if (!remat_move(&search->mover) || state->bad) {
        remat_undo(state);
        return;
    }
    double worse = (double)(state->extra - extra);
    worse += search->price * (double)(state->penalty - penalty);
    if (worse > 0) {
        uint64_t draw = random_bits(&search->mover.random) % REMAT_LOG_TABLE;
        if (worse > temperature * search->log_table[draw]) {
            remat_undo(state);
            return;
        }
    }
    remat_commit(state);
    if (is_better(search))
        note_best(search);
}

/* One round: the temperature falls from hot to cold over `ticks` of effort. */
void remat_anneal(RematSearch *search, const RematRecipe *recipe, uint64_t ticks)
{
    RematState *state = search->state;
    uint64_t begin = state->ticks, told = begin;
    double mean = (double)COST_ONE / (search->model->nodes ? search->model->nodes : 1);
    double unit = (double)COST_ONE / (double)(state->budget > 0 ? state->budget : 1);
    double fall = minus_log(recipe->cold / recipe->hot);
    search->price = recipe->price * unit * (search->shrink ? 30 : 1);
    while (!search->stopped && state->ticks - begin < ticks) {
        uint64_t before = state->ticks;
        double done = (double)(before - begin) / (double)ticks;
        double temperature = mean * recipe->hot * minus_exp(fall * done);
        for (int i = 0; i < STEPS_PER_CHECK && !search->stopped; i++)
            step(search, temperature);
        double change = 1 + recipe->agility * (double)(state->ticks - before) / (double)ticks;
        if (state->penalty && search->price < unit * 1e3)
            search->price *= change;
        else if (!state->penalty && search->price > unit * 1e-4)
            search->price /= change;
        if (state->length > state->slots / 8 * 5 || state->log.count > LOG_LIMIT)
            respread(search);
        if (state->ticks - told > TICKS_PER_TELL) {
            told = state->ticks;
            tell(search);
        }
    }
}

void remat_anneal_begin(RematSearch *search)
{
    const RematProblem *problem = search->model->problem;
    for (int i = 0; i < REMAT_LOG_TABLE; i++)
        search->log_table[i] = minus_log((i + 0.5) / REMAT_LOG_TABLE);
    for (RematId x = 0; x < problem->nodes; x++)
        search->base_cost += problem->node[x].cost;
}
