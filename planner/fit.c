/* From clusters and a budget to a plan: what is computed again, and in which order.
 *
 * Requires: clusters. Leaves: the cheapest plan met whose packed arena is within the budget; where
 * there is none, the smallest one met. Each program is searched by itself (planner/remat.h) on the
 * clusters as an abstract graph; what persists is taken off its budget.
 *
 * The smallest plan is always made first and in the same way, so a budget that is at least its
 * arena is met. From there a ladder of budgets is climbed, the same one for every budget: each rung
 * starts from what the rungs below have found, and every plan met competes. A larger budget climbs
 * higher on the same ladder, so it never gets a costlier plan than a smaller one. What packing
 * needs beyond the live bytes is taken off the next rung; a plan that packed too large still counts
 * for larger budgets.
 */
#include "planner/chain.h"
#include "planner/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The first rungs above the smallest arena are this part of the one without recomputation apart;
 * further up, where the cost is flat, this part of what lies below them. */
enum { CLOSE_PART = 200, GROWTH_PART = 10, RUNGS = 64 };
/* Of a graph with more clusters the rungs are so much farther apart: each takes seconds there.
 * Where it is a chain of blocks there are none: its own schedules are closer to each other than
 * that. */
enum { MANY_CLUSTERS = 20000, FARTHER = 3 };

/* Of the schedules of a chain those that are packed to show what there is. */
enum { SHOWN_PART = 8 };

/* Effort of the search for the smallest plan, about a second for a thousand clusters; of one for an
 * order alone; and of each rung, as a part of the first. */
static const uint64_t EFFORT = 1000, EFFORT_PER_CLUSTER = 2, ORDER_EFFORT = 50, RUNG_PART = 10;

/* Steps of the packer for each unit of effort: on any plan, tenths of a second in all where it does
 * not meet its bound at once; and on the smallest, where every byte counts. */
static const uint64_t PACK_STEPS = 20 * 1000, PACK_SMALLEST = 200 * 1000;

/* An order that was met, what it needs when packed, and its cost. */
typedef struct {
    Order order;
    uint64_t arena, peak, pack_effort;
    double cost;
} Met;

/* A schedule of one program. */
typedef struct {
    RematSchedule schedule;
    int64_t peak;
    double cost;
} Known;

typedef struct {
    const Graph *g;
    const Clusters *clusters;
    const Target *target;
    const PlanOptions *options;
    Order given;      /* every cluster once */
    Order unsearched; /* that, with what the hints ask to be computed again */
    Abstract program[PROGRAMS];
    Chain *chain[BLOCK_DEPTHS];   /* of blocks at depth 1, 2, ...; NULL: none, or another again */
    ARRAY(Known) known[PROGRAMS]; /* schedules to start from */
    uint64_t persistent;          /* bytes, aligned */
    ARRAY(Met) met;
    double begin;
    uint64_t effort; /* spent so far */
    bool cut;
    PlanProgress progress;
} Fit;

Order order_given(const Graph *g, const Clusters *clusters)
{
    Order order = {{0}, {0}};
    for (int p = 0; p < PROGRAMS; p++) {
        order.cluster[p] = ARENA_ARRAY(g->arena, Id, clusters->count);
        for (Id i = 0; i < clusters->count; i++)
            if (clusters->at[i].program == p)
                order.cluster[p][order.count[p]++] = i;
    }
    return order;
}

/* ---- Plans met ------------------------------------------------------------------------------ */

static PlanOptions options_now(const Fit *f)
{
    PlanOptions options = *f->options;
    double left = options.seconds - (remat_seconds() - f->begin);
    if (options.seconds > 0)
        options.seconds = left > 0.01 ? left : 0.01;
    return options;
}

static uint64_t full_effort(const Fit *f)
{
    uint64_t small = (uint64_t)f->clusters->count * EFFORT_PER_CLUSTER;
    return f->options->effort ? f->options->effort : small < EFFORT ? small : EFFORT;
}

/* Packs the order; only what the plan comes to is kept. */
static const Met *meet(Fit *f, const Order *order, uint64_t pack_steps)
{
    uint64_t effort = full_effort(f) < EFFORT ? full_effort(f) : EFFORT;
    uint64_t pack_effort = effort * pack_steps;
    Graph g = *f->g;
    g.arena = arena_new();
    PlanOptions options = options_now(f);
    const Plan *plan = plan_order(&g, f->clusters, order, f->target, &options, pack_effort);
    Met met = {*order, plan->arena, plan->peak, pack_effort, plan->cost};
    f->persistent = plan->persistent;
    arena_free(g.arena);
    ARRAY_PUSH(f->g->arena, &f->met, met);
    if (!f->progress.arena || met.arena < f->progress.arena)
        f->progress.arena = met.arena;
    return &f->met.at[f->met.count - 1];
}

/* By more than the order of a sum changes it. */
static bool is_less(double a, double b)
{
    return a < b * (1 - 1e-9);
}

/* On cost first and arena second, of those within the budget; NULL: there is none. */
static const Met *cheapest(const Fit *f, uint64_t budget)
{
    const Met *best = NULL;
    for (size_t i = 0; i < f->met.count; i++) {
        const Met *m = &f->met.at[i];
        if (m->arena > budget)
            continue;
        if (!best || is_less(m->cost, best->cost) ||
            (!is_less(best->cost, m->cost) && m->arena < best->arena))
            best = m;
    }
    return best;
}

static const Met *smallest_met(const Fit *f)
{
    const Met *best = &f->met.at[0];
    for (size_t i = 1; i < f->met.count; i++)
        if (f->met.at[i].arena < best->arena)
            best = &f->met.at[i];
    return best;
}

/* ---- Schedules to start from ---------------------------------------------------------------- */

/* The training step is the program with a way back. */
static void find_chains(Fit *f)
{
    const Abstract *a = &f->program[PROGRAM_MICRO];
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t bytes = a->problem.nodes * sizeof **a->block;
        if (a->block[i] && (!i || memcmp(a->block[i], a->block[i - 1], bytes) != 0))
            f->chain[i] = chain_new(&a->problem, a->block[i], a->back, f->g->arena);
    }
}

static void know(Fit *f, int p, const RematSchedule *schedule)
{
    RematValuation is = remat_evaluate(&f->program[p].problem, schedule);
    if (is.valid)
        ARRAY_PUSH(f->g->arena, &f->known[p], (Known){*schedule, is.peak, is.cost});
}

/* What the chains come to within the budget; where none is, their smallest. */
static void know_chains(Fit *f, uint64_t budget)
{
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t count, best = 0;
        const ChainPoint *point = f->chain[i] ? chain_points(f->chain[i], &count) : NULL;
        if (!point)
            continue;
        for (size_t k = 1; k < count && (uint64_t)point[best].peak > budget; k++)
            if (point[k].peak < point[best].peak)
                best = k;
        RematSchedule found = chain_schedule(f->chain[i], best);
        know(f, PROGRAM_MICRO, &found);
    }
}

/* The cheapest known within the budget; where there is none, the smallest. What keeps the hints in
 * the given order is always known. */
static const Known *best_known(const Fit *f, int p, uint64_t budget)
{
    const Known *best = NULL;
    for (size_t i = 0; i < f->known[p].count; i++) {
        const Known *k = &f->known[p].at[i];
        bool fits = (uint64_t)k->peak <= budget;
        bool fitted = best && (uint64_t)best->peak <= budget;
        if (!best || (fits && !fitted) ||
            (fits == fitted && (fits ? k->cost < best->cost : k->peak < best->peak)))
            best = k;
    }
    return best;
}

/* ---- Searching ------------------------------------------------------------------------------ */

static bool show_progress(const RematProgress *now, void *data)
{
    Fit *f = data;
    const Met *best = cheapest(f, f->options->budget ? f->options->budget : UINT64_MAX);
    (void)now;
    f->progress.seconds = remat_seconds() - f->begin;
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

/* One program of the order, replaced by what the search found. */
static void adopt(Fit *f, Order *order, int p, const RematProblem *problem,
                  const RematResult *found)
{
    Id *cluster = ARENA_ARRAY(f->g->arena, Id, found->schedule.count);
    assert(remat_evaluate(problem, &found->schedule).valid);
    (void)problem;
    for (size_t i = 0; i < found->schedule.count; i++)
        cluster[i] = f->program[p].cluster[found->schedule.node[i]];
    order->cluster[p] = cluster;
    order->count[p] = (Id)found->schedule.count;
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
    problem.node = ARENA_ARRAY(f->g->arena, RematNode, problem.nodes);
    memcpy(problem.node, f->program[p].problem.node, problem.nodes * sizeof *problem.node);
    for (RematId n = 0; n < problem.nodes; n++)
        problem.node[n].flags |= REMAT_ONCE;
    return problem;
}

/* As small as an order alone makes it. */
static void meet_ordered(Fit *f)
{
    uint64_t effort = full_effort(f) < ORDER_EFFORT ? full_effort(f) : ORDER_EFFORT;
    Order order = f->unsearched;
    for (int p = 0; p < PROGRAMS; p++) {
        if (!f->given.count[p] || f->program[p].hinted)
            continue;
        RematProblem problem = once(f, p);
        RematOptions how = search_options(f, 0, effort);
        RematResult found = remat_minimize(&problem, &how, f->g->arena);
        count_effort(f, &found);
        adopt(f, &order, p, &problem, &found);
    }
    meet(f, &order, PACK_STEPS);
}

/* What is computed again for nothing is taken out, at the size that was found. */
static RematResult thin_out(Fit *f, int p, RematResult found)
{
    const RematProblem *problem = &f->program[p].problem;
    if (found.schedule.count == problem->nodes || f->cut)
        return found;
    RematOptions how = search_options(f, (uint64_t)found.peak, full_effort(f));
    how.start = &found.schedule;
    how.starts = 1;
    RematResult cheaper = remat_solve(problem, &how, f->g->arena);
    count_effort(f, &cheaper);
    return cheaper.fits ? cheaper : found;
}

/* Programs in the order of what they need in the given order, the largest first. */
static void sort_programs(const Fit *f, int program[PROGRAMS])
{
    for (int i = 0; i < PROGRAMS; i++) {
        int k = i;
        for (; k && f->known[program[k - 1]].at[0].peak < f->known[i].at[0].peak; k--)
            program[k] = program[k - 1];
        program[k] = i;
    }
}

/* Every program as small as the search makes it, or as one before it is: they share the arena. The
 * live bytes are not the arena, so both the schedule with the fewest and the one thinned out
 * compete. */
static void meet_smallest(Fit *f)
{
    int program[PROGRAMS] = {0};
    uint64_t most = 0; /* that one of them needs */
    Order order = f->given, thin = f->given;
    find_chains(f);
    know_chains(f, 0);
    sort_programs(f, program);
    for (int i = 0; i < PROGRAMS; i++) {
        int p = program[i];
        const RematProblem *problem = &f->program[p].problem;
        const Known *known = best_known(f, p, most);
        RematResult found = {.schedule = known->schedule, .peak = known->peak};
        if ((uint64_t)known->peak > most) {
            RematOptions how = search_options(f, 0, full_effort(f));
            how.start = &known->schedule;
            how.starts = 1;
            found = remat_minimize(problem, &how, f->g->arena);
            count_effort(f, &found);
            know(f, p, &found.schedule);
        }
        adopt(f, &order, p, problem, &found);
        if ((uint64_t)known->peak > most)
            found = thin_out(f, p, found);
        know(f, p, &found.schedule);
        adopt(f, &thin, p, problem, &found);
        most = (uint64_t)found.peak > most ? (uint64_t)found.peak : most;
    }
    meet(f, &order, PACK_SMALLEST);
    meet(f, &thin, PACK_SMALLEST);
}

/* ---- Chains of blocks ----------------------------------------------------------------------- */

typedef struct {
    int depth;
    size_t point;
    int64_t peak;
    double cost;
} Link;

static int by_cost(const void *a, const void *b)
{
    const Link *x = a, *y = b;
    if (x->cost < y->cost || x->cost > y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->depth != y->depth ? x->depth - y->depth
                                : (x->point > y->point) - (x->point < y->point);
}

static bool has_chain(const Fit *f)
{
    for (int i = 0; i < BLOCK_DEPTHS; i++)
        if (f->chain[i])
            return true;
    return false;
}

static void meet_link(Fit *f, const Link *link)
{
    Order order = f->given;
    for (int p = 0; p < PROGRAMS; p++) {
        RematResult found = {.schedule = best_known(f, p, (uint64_t)link->peak)->schedule};
        if (p == PROGRAM_MICRO)
            found.schedule = chain_schedule(f->chain[link->depth], link->point);
        adopt(f, &order, p, &f->program[p].problem, &found);
    }
    meet(f, &order, PACK_STEPS);
}

/* From the cheapest on, up to the first whose arena is within the budget: that is the cheapest of
 * them all, whatever the budget. Where `all`, a part of them. */
static void meet_chains(Fit *f, uint64_t budget, bool all)
{
    ARRAY(Link) link = {0};
    for (int i = 0; i < BLOCK_DEPTHS; i++) {
        size_t count = 0;
        const ChainPoint *point = f->chain[i] ? chain_points(f->chain[i], &count) : NULL;
        for (size_t k = 0; k < count; k++)
            if (!all || k % SHOWN_PART == 0)
                ARRAY_PUSH(f->g->arena, &link, (Link){i, k, point[k].peak, point[k].cost});
    }
    if (link.count)
        qsort(link.at, link.count, sizeof *link.at, by_cost);
    for (size_t i = 0; i < link.count; i++) {
        if ((uint64_t)link.at[i].peak > budget)
            continue;
        meet_link(f, &link.at[i]);
        if (!all && f->met.at[f->met.count - 1].arena <= budget)
            break;
    }
}

/* ---- The ladder ----------------------------------------------------------------------------- */

/* Between two arenas, ascending. */
static size_t find_rungs(const Fit *f, uint64_t least, uint64_t most, uint64_t rung[RUNGS])
{
    size_t count = 0, far = f->clusters->count > MANY_CLUSTERS ? FARTHER : 1;
    for (uint64_t above = 0; count < RUNGS;) {
        uint64_t close = most / CLOSE_PART * far + 1, wide = above / GROWTH_PART * far;
        above += close > wide ? close : wide;
        if (least + above >= most)
            break;
        rung[count++] = least + above;
    }
    return count;
}

/* The cheapest of one rung: from what the rungs below found, and from what the chains come to. */
static RematResult search_rung(Fit *f, int p, uint64_t ask)
{
    RematOptions how = search_options(f, ask, full_effort(f) / RUNG_PART);
    if (p == PROGRAM_MICRO)
        know_chains(f, ask);
    how.start = &best_known(f, p, ask)->schedule;
    how.starts = 1;
    RematResult found = remat_solve(&f->program[p].problem, &how, f->g->arena);
    count_effort(f, &found);
    return found;
}

static uint64_t climb_to(Fit *f, uint64_t rung, uint64_t slack)
{
    Order order = f->given;
    if (rung <= slack + f->persistent)
        return slack;
    for (int p = 0; p < PROGRAMS && !f->cut; p++) {
        if (!f->given.count[p])
            continue;
        RematResult found = search_rung(f, p, rung - slack);
        if (!found.fits)
            return slack;
        know(f, p, &found.schedule);
        adopt(f, &order, p, &f->program[p].problem, &found);
    }
    if (f->cut)
        return slack;
    const Met *met = meet(f, &order, PACK_STEPS);
    return met->arena > met->peak ? met->arena - met->peak : 0;
}

static void climb(Fit *f, uint64_t budget, uint64_t most)
{
    uint64_t rung[RUNGS], slack;
    const Met *least = smallest_met(f);
    size_t rungs = find_rungs(f, least->arena, most, rung);
    slack = least->arena - least->peak;
    while (rungs && rung[rungs - 1] > budget)
        rungs--;
    f->progress.most = (uint32_t)rungs;
    for (size_t i = 0; i < rungs && !f->cut; i++) {
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
        if (!f->given.count[p])
            continue;
        Abstract a = abstract(f->g, f->clusters, f->target, f->options, &f->given, p, true);
        bound += remat_bound(&a.problem, (int64_t)(budget - f->persistent) - a.held);
    }
    return bound;
}

/* Orders that recompute nothing but what the hints ask for. */
static void meet_given(Fit *f)
{
    f->unsearched = f->given;
    for (int p = 0; p < PROGRAMS; p++) {
        f->program[p] = abstract(f->g, f->clusters, f->target, f->options, &f->given, p, false);
        if (!f->program[p].hinted)
            continue;
        RematResult found = {.schedule = f->program[p].start};
        if (f->program[p].broken == NONE)
            adopt(f, &f->unsearched, p, &f->program[p].problem, &found);
    }
    const Met *met = meet(f, &f->unsearched, PACK_STEPS);
    for (int p = 0; p < PROGRAMS; p++) {
        f->program[p].problem.base = (int64_t)f->persistent + f->program[p].held;
        know(f, p, &f->program[p].start);
    }
    f->progress.least_cost = f->progress.bound = met->cost;
}

/* Meets what there is for the budget; all of the ladder where `all`. */
static void search(Fit *f, uint64_t budget, bool all)
{
    const PlanOptions *options = f->options;
    meet_given(f);
    for (int p = 0; p < PROGRAMS; p++)
        if (f->program[p].broken != NONE)
            return;
    uint64_t given = f->met.at[0].arena;
    if (given > budget || !options->budget || all)
        meet_ordered(f);
    uint64_t most = smallest_met(f)->arena;
    if (options->no_recompute ||
        (most <= budget && !all && (options->budget || !options->smallest)))
        return;
    f->progress.bound = options->budget ? find_bound(f, budget) : f->progress.least_cost;
    meet_smallest(f);
    if (options->smallest || f->cut)
        return;
    meet_chains(f, all ? most : budget, all);
    if (!f->cut && (f->clusters->count <= MANY_CLUSTERS || !has_chain(f)))
        climb(f, all ? most : budget, most);
}

static Fit begin(const Graph *g, const Clusters *clusters, const Target *target,
                 const PlanOptions *options)
{
    return (Fit){.g = g,
                 .clusters = clusters,
                 .target = target,
                 .options = options,
                 .given = order_given(g, clusters),
                 .begin = remat_seconds()};
}

static const Met *choose(const Fit *f, uint64_t budget)
{
    const Met *best = f->options->smallest ? NULL : cheapest(f, budget);
    if (!f->options->budget && best) /* nothing forces recomputation: the smallest without */
        best = cheapest(f, UINT64_MAX);
    return best ? best : smallest_met(f);
}

Plan *plan_make(Graph *g, const Clusters *clusters, const Target *target,
                const PlanOptions *options)
{
    Fit f = begin(g, clusters, target, options);
    uint64_t budget = options->budget ? options->budget : UINT64_MAX;
    search(&f, budget, false);
    const Met *best = choose(&f, budget);
    PlanOptions now = options_now(&f);
    Plan *plan = plan_order(g, clusters, &best->order, target, &now, best->pack_effort);
    plan->least_cost = f.progress.least_cost;
    plan->cost_bound = f.progress.bound;
    plan->effort = f.effort;
    plan->cut = f.cut;
    plan->broken_hint = NONE;
    for (int p = 0; p < PROGRAMS; p++)
        if (f.program[p].broken != NONE)
            plan->broken_hint = f.program[p].broken;
    return plan;
}

static int by_arena(const void *a, const void *b)
{
    const PlanPoint *x = a, *y = b;
    if (x->arena != y->arena)
        return x->arena < y->arena ? -1 : 1;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

size_t plan_points(Graph *g, const Clusters *clusters, const Target *target,
                   const PlanOptions *options, PlanPoint **points)
{
    Fit f = begin(g, clusters, target, options);
    search(&f, UINT64_MAX, true);
    PlanPoint *point = ARENA_ARRAY(g->arena, PlanPoint, f.met.count);
    for (size_t i = 0; i < f.met.count; i++)
        point[i] = (PlanPoint){f.met.at[i].arena, f.met.at[i].cost};
    qsort(point, f.met.count, sizeof *point, by_arena);
    size_t count = 0;
    for (size_t i = 0; i < f.met.count; i++)
        if (!count || is_less(point[i].cost, point[count - 1].cost))
            point[count++] = point[i];
    *points = point;
    return count;
}
