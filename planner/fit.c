/* From clusters and a budget to a plan: what is computed again, and in which order.
 *
 * Requires: clusters. Leaves: the cheapest plan tried whose packed arena is within the budget;
 * if there is none, the smallest one tried. Each program is searched on its own
 * (planner/remat/remat.h) on the clusters as an abstract graph; what persists is taken off its
 * budget.
 *
 * The smallest plan is always made first and in the same way, so a budget that is at least its
 * arena is met. From there a ladder of budgets is climbed, the same one for every budget: each rung
 * starts from what the rungs below have found, and every plan tried competes. A larger budget
 * climbs higher on the same ladder, so it never gets a costlier plan than a smaller one. What was
 * found is moved back towards the given order before it is packed (fit_settle.c): lives that are in
 * order leave fewer gaps. What packing needs beyond the live bytes is taken off the next rung, and
 * less of it once a rung is met; a plan that packed too large still counts for larger budgets.
 * Schedules of chains of blocks (planner/chain.h) compete too; which of them are packed depends on
 * the budget, but the one that is chosen is always the cheapest that fits.
 */
#include "planner/fit.h"

#include "frontend/base/clock.h"

#include <stdlib.h>
#include <string.h>

/* The first rungs above the smallest arena are this part of the one without recomputation apart;
 * further up, where the cost is flat, this fraction of what is below them. */
enum { CLOSE_PART = 200, GROWTH_PART = 10, RUNGS = 64 };
/* Of a graph with more clusters the rungs are so much farther apart: each takes seconds there.
 * Where it is a chain of blocks there are none: its own schedules are closer to each other than
 * that. */
enum { MANY_CLUSTERS = 20000, FARTHER = 3 };

/* Searches on each rung, from other seeds; and on the first rungs. */
enum { SEEDS = 1, CLOSE_SEEDS = 3, CLOSE_RUNGS = 12 };

/* The ladder is climbed beside a rival where it begins lower by this part at least. */
enum { RIVAL_PART = 33 };

/* Effort of a search for an order alone; and of each rung, as a part of the full one. */
enum { ORDER_EFFORT = 50, RUNG_PART = 10 };

Order order_given(Arena *arena, const Clusters *clusters)
{
    Order order = {{0}, {0}};
    for (int p = 0; p < PROGRAMS; p++) {
        order.cluster[p] = ARENA_ARRAY(arena, Id, clusters->count);
        for (Id i = 0; i < clusters->count; i++)
            if (clusters->at[i].program == p)
                order.cluster[p][order.count[p]++] = i;
    }
    return order;
}

/* ---- Searching ------------------------------------------------------------------------------ */

static bool show_progress(const RematProgress *now, void *data)
{
    Fit *f = data;
    const Trial *best = cheapest(f, f->options->budget ? f->options->budget : UINT64_MAX);
    (void)now;
    f->progress.fits = best != NULL;
    f->progress.cost = best ? best->cost : 0;
    f->options->progress(&f->progress, f->options->data);
    return true;
}

static RematOptions search_options(Fit *f, uint64_t budget, uint64_t effort)
{
    return (RematOptions){.budget = (int64_t)budget,
                          .effort = effort ? effort : 1,
                          .seconds = options_now(f).seconds,
                          .no_bound = true,
                          .cancel = f->options->cancel,
                          .progress = f->options->progress ? show_progress : NULL,
                          .data = f};
}

static void count_effort(Fit *f, const RematResult *found)
{
    f->effort += found->effort;
    f->cut |= found->stop == REMAT_TIMED_OUT || found->stop == REMAT_CANCELLED;
}

/* The program with every node once. */
static RematProblem once(const Fit *f, int p)
{
    RematProblem problem = f->program[p].problem;
    problem.node = ARENA_ARRAY(f->arena, RematNode, problem.nodes);
    memcpy(problem.node, f->program[p].problem.node, problem.nodes * sizeof *problem.node);
    for (RematId n = 0; n < problem.nodes; n++)
        problem.node[n].flags |= REMAT_ONCE;
    return problem;
}

/* As small as an order alone makes it. */
static void try_ordered(Fit *f)
{
    uint64_t effort = full_effort(f) < ORDER_EFFORT ? full_effort(f) : ORDER_EFFORT;
    uint64_t most = 0; /* that one of them needs */
    Order order = f->unsearched;
    for (int p = 0; p < PROGRAMS; p++) {
        if (!f->given.count[p] || f->program[p].hinted)
            continue;
        RematProblem problem = once(f, p);
        RematOptions how = search_options(f, 0, effort);
        RematResult found = remat_minimize(&problem, &how, f->arena);
        count_effort(f, &found);
        adopt(f, &order, p, &found.schedule);
        most = (uint64_t)found.peak > most ? (uint64_t)found.peak : most;
    }
    const Order settled = settle_order(f, &order, most);
    const Trial *trial = try_order(f, &settled, PACK_STEPS, 0);
    if (trial->arena > trial->peak)
        try_order(f, &order, PACK_STEPS, 0);
}

/* What is computed again for nothing is taken out, at the size that was found. */
static RematSchedule thin_out(Fit *f, int p, const Start *found)
{
    const RematProblem *problem = &f->program[p].problem;
    if (found->schedule.count == problem->nodes || f->cut)
        return found->schedule;
    RematOptions how = search_options(f, (uint64_t)found->peak, full_effort(f));
    how.start = &found->schedule;
    how.starts = 1;
    RematResult cheaper = remat_solve(problem, &how, f->arena);
    count_effort(f, &cheaper);
    return cheaper.fits ? cheaper.schedule : found->schedule;
}

/* Programs in the order of what they need in the given order, the largest first. */
static void sort_programs(const Fit *f, int program[PROGRAMS])
{
    for (int i = 0; i < PROGRAMS; i++) {
        int k = i;
        for (; k && f->start[program[k - 1]].at[0].peak < f->start[i].at[0].peak; k--)
            program[k] = program[k - 1];
        program[k] = i;
    }
}

/* Every program as small as the search makes it, or as one before it is: they share the arena.
 * Leaves what each came to, and the most that one of them needs; `searched` are those that were. */
static uint64_t find_smallest(Fit *f, Start smallest[PROGRAMS], bool searched[PROGRAMS])
{
    int program[PROGRAMS] = {0};
    uint64_t most = 0;
    sort_programs(f, program);
    for (int i = 0; i < PROGRAMS; i++) {
        int p = program[i];
        smallest[p] = *best_start(f, p, most);
        searched[p] = (uint64_t)smallest[p].peak > most;
        if (searched[p]) {
            RematOptions how = search_options(f, 0, full_effort(f));
            how.start = &smallest[p].schedule;
            how.starts = 1;
            RematResult found = remat_minimize(&f->program[p].problem, &how, f->arena);
            count_effort(f, &found);
            remember(f, p, &found.schedule);
            smallest[p] = (Start){found.schedule, found.peak, found.cost};
        }
        most = (uint64_t)smallest[p].peak > most ? (uint64_t)smallest[p].peak : most;
    }
    return most;
}

/* The live bytes are not the arena, so both the schedule with the fewest and the one thinned out
 * compete; any that fits will do where nothing else was asked. */
static void try_smallest(Fit *f)
{
    Start smallest[PROGRAMS];
    bool searched[PROGRAMS];
    Order order = f->given;
    find_chains(f);
    remember_chains(f, 0);
    uint64_t most = find_smallest(f, smallest, searched);
    for (int p = 0; p < PROGRAMS; p++)
        adopt(f, &order, p, &smallest[p].schedule);
    order = settle_order(f, &order, most);
    const Trial *trial = try_order(f, &order, PACK_SMALLEST, 0);
    if (f->options->smallest && trial->arena <= f->options->budget)
        return;
    for (int p = 0; p < PROGRAMS; p++) {
        RematSchedule thin = searched[p] ? thin_out(f, p, &smallest[p]) : smallest[p].schedule;
        remember(f, p, &thin);
        adopt(f, &order, p, &thin);
    }
    order = settle_order(f, &order, most);
    try_order(f, &order, PACK_SMALLEST, 0);
}

/* ---- The ladder ----------------------------------------------------------------------------- */

/* Between two arenas, ascending. */
static size_t find_rungs(const Fit *f, uint64_t least, uint64_t most, uint64_t rung[RUNGS])
{
    size_t count = 0, far = f->task.clusters->count > MANY_CLUSTERS ? FARTHER : 1;
    for (uint64_t above = 0; count < RUNGS;) {
        uint64_t close = most / CLOSE_PART * far + 1, wide = above / GROWTH_PART * far;
        above += close > wide ? close : wide;
        if (least + above >= most)
            break;
        rung[count++] = least + above;
    }
    return count;
}

static RematResult search_from(Fit *f, int p, uint64_t ask, const RematSchedule *start,
                               uint64_t seed)
{
    RematOptions how = search_options(f, ask, full_effort(f) / RUNG_PART);
    how.seed = seed;
    how.start = start;
    how.starts = 1;
    RematResult found = remat_solve(&f->program[p].problem, &how, f->arena);
    count_effort(f, &found);
    return found;
}

/* The cheapest of one rung: from what the rungs below found, or the chains come to, and then from
 * what came of that: another seed has more to give than more effort, and most near the smallest. */
static RematResult search_rung(Fit *f, int p, uint64_t ask)
{
    const uint32_t seeds = f->progress.done < CLOSE_RUNGS ? CLOSE_SEEDS : SEEDS;
    if (p == PROGRAM_STEP)
        remember_chains(f, ask);
    RematResult best = search_from(f, p, ask, &best_start(f, p, ask)->schedule, 0);
    for (uint32_t k = 1; k < seeds && !f->cut && best.stop != REMAT_PROVED; k++) {
        RematResult found = search_from(f, p, ask, &best.schedule, k);
        if (found.fits && (!best.fits || found.cost < best.cost))
            best = found;
    }
    return best;
}

static uint64_t climb_to(Fit *f, uint64_t rung, uint64_t slack)
{
    Order order = f->given;
    uint64_t ask = rung > slack + f->least_peak ? rung - slack : f->least_peak;
    for (int p = 0; p < PROGRAMS && !f->cut; p++) {
        if (!f->given.count[p])
            continue;
        RematResult found = search_rung(f, p, ask);
        if (!found.fits)
            return slack;
        remember(f, p, &found.schedule);
        adopt(f, &order, p, &found.schedule);
    }
    if (f->cut)
        return slack;
    order = settle_order(f, &order, ask);
    Trial *trial = try_order(f, &order, PACK_STEPS, rung);
    trial->budget = trial->arena > rung ? trial->arena : rung;
    return trial->arena > rung ? trial->arena - trial->peak : slack / 2;
}

static void climb(Fit *f, uint64_t budget, uint64_t most)
{
    uint64_t rung[RUNGS], slack = f->least - f->least_peak;
    size_t rungs = find_rungs(f, f->least, most, rung);
    while (rungs && rung[rungs - 1] > budget)
        rungs--;
    f->progress.most = (uint32_t)rungs;
    for (size_t i = 0; i < rungs && !is_cut(f); i++) {
        slack = climb_to(f, rung[i], slack);
        f->progress.done = (uint32_t)i + 1;
    }
}

/* ---- The door ------------------------------------------------------------------------------- */

/* No plan within the budget costs less. */
static double find_bound(const Fit *f, uint64_t budget)
{
    double bound = 0;
    for (int p = 0; p < PROGRAMS; p++) {
        if (!f->given.count[p] || !program_counts(f->task.clusters, p))
            continue;
        RematProgram a = remat_build(f->arena, &f->task, &f->given, p, true);
        bound += remat_bound(&a.problem, (int64_t)(budget - f->persistent) - a.collected);
    }
    return bound;
}

/* Orders that recompute nothing but what the hints ask for. */
static void try_given(Fit *f)
{
    f->unsearched = f->given;
    for (int p = 0; p < PROGRAMS; p++) {
        f->program[p] = remat_build(f->arena, &f->task, &f->given, p, false);
        if (!f->program[p].hinted)
            continue;
        if (f->program[p].broken == NONE)
            adopt(f, &f->unsearched, p, &f->program[p].start);
    }
    const Trial *trial = try_order(f, &f->unsearched, PACK_STEPS, 0);
    for (int p = 0; p < PROGRAMS; p++) {
        f->program[p].problem.base = (int64_t)f->persistent + f->program[p].collected;
        remember(f, p, &f->program[p].start);
    }
    f->progress.least_cost = f->progress.bound = trial->cost;
    f->progress.training = plan_trains_step(f->task.clusters);
}

/* Tries what there is for the budget; where `all`, all of the ladder that is of use. False where no
 * plan can be: then nothing is searched. */
static bool search_all(Fit *f, uint64_t budget, bool all)
{
    const PlanOptions *options = f->options;
    try_given(f);
    for (int p = 0; p < PROGRAMS; p++)
        if (f->program[p].broken != NONE)
            return true;
    if (options->most && f->trial.at[0].floor > options->most)
        return false;
    uint64_t given = f->trial.at[0].arena;
    if (given > budget || !options->budget || all)
        try_ordered(f);
    uint64_t most = smallest_trial(f)->arena;
    if (options->no_recompute ||
        (most <= budget && !all && (options->budget || !options->smallest)))
        return true;
    if (options->budget && !options->smallest)
        f->progress.bound = find_bound(f, budget) +
                            plan_wait(f->task.g, f->task.clusters, f->task.target, options->ring);
    if (options->enough > 0 && f->progress.bound >= options->enough * (1 - 1e-9))
        return false;
    try_smallest(f); /* first, so that a search that is cut has it */
    f->least = smallest_trial(f)->arena;
    f->least_peak = smallest_trial(f)->peak;
    for (int p = 0; p < PROGRAMS; p++)
        f->early[p] = f->start[p].count;
    if (options->smallest)
        return true;
    if (all)
        budget = options->most && options->most < most ? options->most : most;
    try_chains(f, budget, all);
    if (options->rival && f->least >= options->rival - options->rival / RIVAL_PART)
        return true;
    if (!is_cut(f) && (f->task.clusters->count <= MANY_CLUSTERS || !has_chain(f)))
        climb(f, budget, most);
    return true;
}

Task task_new(Arena *arena, const Graph *g, const Clusters *clusters, const Target *target,
              const PlanOptions *options)
{
    uint64_t *workspace = ARENA_ARRAY(arena, uint64_t, clusters->count);
    for (Id i = 0; i < clusters->count; i++)
        workspace[i] = target->workspace(target, g, clusters, i);
    return (Task){g, clusters, target, options, workspace};
}

static Fit begin(Arena *arena, const Graph *g, const Clusters *clusters, const Target *target,
                 const PlanOptions *options)
{
    return (Fit){.arena = arena,
                 .task = task_new(arena, g, clusters, target, options),
                 .options = options,
                 .given = order_given(arena, clusters),
                 .begin = clock_seconds()};
}

/* Where nothing fits, what a budget of the smallest arena gets. */
static const Trial *choose_trial(Fit *f, uint64_t budget)
{
    const Trial *best = f->options->smallest ? smallest_trial(f) : cheapest(f, budget);
    if (best)
        return best;
    budget = smallest_trial(f)->arena;
    try_chains(f, budget, false);
    return cheapest(f, budget);
}

Plan *plan_make(Arena *arena, const Graph *g, const Clusters *clusters, const Target *target,
                const PlanOptions *options, Search *search)
{
    Fit f = begin(arena, g, clusters, target, options);
    uint64_t budget = options->budget ? options->budget : UINT64_MAX;
    bool hopeless = !search_all(&f, budget, false);
    const Trial *best = hopeless ? &f.trial.at[0] : choose_trial(&f, budget);
    *search = (Search){.least_cost = f.progress.least_cost,
                       .cost_bound = f.progress.bound,
                       .least = f.least,
                       .effort = f.effort,
                       .cut = f.cut,
                       .hopeless = hopeless,
                       .broken_hint = NONE};
    for (int p = 0; p < PROGRAMS; p++)
        if (f.program[p].broken != NONE)
            search->broken_hint = f.program[p].broken;
    Plan *plan = settle(&f, best);
    even_layers(plan, target->align);
    return plan;
}

static int by_budget(const void *a, const void *b)
{
    const PlanPoint *x = a, *y = b;
    if (x->budget != y->budget)
        return x->budget < y->budget ? -1 : 1;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

size_t plan_points(Arena *arena, const Graph *g, const Clusters *clusters, const Target *target,
                   const PlanOptions *options, PlanPoint **points, uint64_t *least)
{
    Fit f = begin(arena, g, clusters, target, options);
    search_all(&f, UINT64_MAX, true);
    PlanPoint *point = ARENA_ARRAY(arena, PlanPoint, f.trial.count);
    for (size_t i = 0; i < f.trial.count; i++)
        point[i] = (PlanPoint){f.trial.at[i].budget, f.trial.at[i].cost};
    qsort(point, f.trial.count, sizeof *point, by_budget);
    size_t count = 0;
    for (size_t i = 0; i < f.trial.count; i++)
        if (!count || is_less(point[i].cost, point[count - 1].cost))
            point[count++] = point[i];
    *points = point;
    *least = f.least;
    return count;
}
