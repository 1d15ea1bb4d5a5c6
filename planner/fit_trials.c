/* Plans that were tried, and schedules to start from. */
#include "planner/fit.h"

#include <string.h>

#include "frontend/base/clock.h"

/* ---- Plans tried ------------------------------------------------------------------------------
 */

PlanOptions options_now(const Fit *f)
{
    PlanOptions options = *f->options;
    double left = options.seconds - (clock_seconds() - f->begin);
    if (options.seconds > 0)
        options.seconds = left > 0.01 ? left : 0.01;
    return options;
}

bool is_cut(Fit *f)
{
    const PlanOptions *o = f->options;
    f->cut |=
        (o->cancel && *o->cancel) || (o->seconds > 0 && clock_seconds() - f->begin >= o->seconds);
    return f->cut;
}

uint64_t full_effort(const Fit *f)
{
    uint64_t small = (uint64_t)f->task.clusters->count * EFFORT_PER_CLUSTER;
    return f->options->effort ? f->options->effort : small < EFFORT ? small : EFFORT;
}

uint64_t pack_effort(const Fit *f, uint64_t steps)
{
    return (full_effort(f) < EFFORT ? full_effort(f) : EFFORT) * steps;
}

Trial *try_order(Fit *f, const Order *order, uint64_t pack_steps, uint64_t capacity)
{
    Arena *scratch = arena_new();
    PlanOptions options = options_now(f);
    Task now = f->task;
    now.options = &options;
    const Plan *plan = plan_order(scratch, &now, order, pack_effort(f, pack_steps), capacity, NULL);
    Packing packing = {ARENA_ARRAY(f->arena, uint64_t, plan->buffers), {0}, plan->bound};
    memcpy(packing.height, plan->arena, sizeof plan->arena);
    for (Id i = 0; i < plan->buffers; i++)
        packing.offset[i] = plan->buffer[i].offset;
    Trial trial = {
        *order,     plan->arena[SPACE_ARENA], plan->peak, plan->floor, packing, plan->cost,
        plan->rest, plan->arena[SPACE_ARENA]};
    f->persistent = plan->persistent;
    arena_free(scratch);
    ARRAY_PUSH(f->arena, &f->trial, trial);
    if (!f->progress.arena || trial.arena < f->progress.arena)
        f->progress.arena = trial.arena;
    return &f->trial.at[f->trial.count - 1];
}

bool is_less(double a, double b)
{
    return a < b * (1 - 1e-9);
}

static bool is_better(const Trial *a, const Trial *b)
{
    if (is_less(a->cost, b->cost) || is_less(b->cost, a->cost))
        return a->cost < b->cost;
    if (is_less(a->rest, b->rest) || is_less(b->rest, a->rest))
        return a->rest < b->rest;
    return a->arena < b->arena;
}

const Trial *cheapest(const Fit *f, uint64_t budget)
{
    const Trial *best = NULL;
    for (size_t i = 0; i < f->trial.count; i++) {
        const Trial *m = &f->trial.at[i];
        if (m->budget <= budget && (!best || is_better(m, best)))
            best = m;
    }
    return best;
}

const Trial *smallest_trial(const Fit *f)
{
    const Trial *best = &f->trial.at[0];
    for (size_t i = 1; i < f->trial.count; i++)
        if (f->trial.at[i].arena < best->arena)
            best = &f->trial.at[i];
    return best;
}

/* ---- Schedules to start from ---------------------------------------------------------------- */

void remember(Fit *f, int p, const RematSchedule *schedule)
{
    RematValuation is = remat_evaluate(&f->program[p].problem, schedule);
    if (is.valid)
        ARRAY_PUSH(f->arena, &f->start[p], (Start){*schedule, is.peak, is.cost});
}

const Start *best_start(const Fit *f, int p, uint64_t budget)
{
    return best_of(f, p, budget, f->start[p].count);
}

const Start *best_of(const Fit *f, int p, uint64_t budget, size_t count)
{
    const Start *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const Start *k = &f->start[p].at[i];
        bool fits = (uint64_t)k->peak <= budget;
        bool fitted = best && (uint64_t)best->peak <= budget;
        if (!best || (fits && !fitted) ||
            (fits == fitted && (fits ? k->cost < best->cost : k->peak < best->peak)))
            best = k;
    }
    return best;
}

void adopt(Fit *f, Order *order, int p, const RematSchedule *schedule)
{
    Id *cluster = ARENA_ARRAY(f->arena, Id, schedule->count);
    for (size_t i = 0; i < schedule->count; i++)
        cluster[i] = f->program[p].cluster[schedule->node[i]];
    order->cluster[p] = cluster;
    order->count[p] = (Id)schedule->count;
}
