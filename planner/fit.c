/* From clusters and a budget to a plan: what is computed again, and in which order.
 *
 * Requires: clusters. Leaves: the cheapest plan met whose packed arena is within the budget; where
 * there is none, the smallest one met. Each program is searched by itself (planner/remat.h) on the
 * clusters as an abstract graph; what persists is taken off its budget. Since packing needs a
 * little more than the live bytes, what it needs more is fed back and the search repeated.
 *
 * The smallest plan is always made first and in the same way, so a budget that is at least its
 * arena is met.
 */
#include "planner/internal.h"
#include "planner/remat.h"

#include <assert.h>
#include <string.h>

enum { ROUNDS = 4 };

/* Effort of a search for a budget, a few seconds, and of one for an order alone. */
static const uint64_t EFFORT = 1000, ORDER_EFFORT = 50;

typedef struct {
    const Graph *g;
    const Clusters *clusters;
    const Target *target;
    const PlanOptions *options;
    uint64_t persistent; /* bytes, aligned */
    Id *number;          /* by value: its number in the problem at hand */
    uint64_t effort;     /* spent so far */
    bool cut;
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

/* ---- A program as an abstract graph --------------------------------------------------------- */

typedef struct {
    RematProblem problem;
    Id *cluster; /* by node of the problem */
    ARRAY(RematValue) value;
    ARRAY(RematId) read;
    ARRAY(RematInPlace) in_place;
} Abstract;

static bool has_effect(const Fit *f, Id cluster)
{
    const Cluster *c = &f->clusters->at[cluster];
    for (Id k = 0; k < c->nodes; k++)
        if (f->g->node.at[f->clusters->node[c->node + k]].op->flags & OP_EFFECT)
            return true;
    return false;
}

static bool is_output(const Graph *g, Id value)
{
    for (size_t i = 0; i < g->output.count; i++)
        if (g->output.at[i].use.value == value)
            return true;
    return false;
}

/* The scope, or one around it, asks that only its inputs be stored. */
static Id checkpoint_of(const Graph *g, Id scope)
{
    for (; scope != NONE; scope = g->scope.at[scope].parent)
        if (g->scope.at[scope].hint & HINT_CHECKPOINT)
            return scope;
    return NONE;
}

/* The value is read on the way forward only within the checkpointed block that makes it. */
static bool *find_inner(const Fit *f)
{
    const Graph *g = f->g;
    bool *inner = ARENA_ARRAY(g->arena, bool, g->value.count);
    for (Id v = 0; v < g->value.count; v++) {
        Id node = g->value.at[v].node;
        inner[v] = node != NONE && checkpoint_of(g, g->node.at[node].scope) != NONE;
    }
    for (size_t n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        for (Id i = 0; i < node->uses && node->phase == PHASE_FORWARD; i++) {
            Id value = node_use(g, node, i).value;
            if (value == NONE || !inner[value])
                continue;
            Id made = g->value.at[value].node;
            if (checkpoint_of(g, g->node.at[made].scope) != checkpoint_of(g, node->scope))
                inner[value] = false;
        }
    }
    return inner;
}

static void add_value(Fit *f, Abstract *a, Id value, RematId node, bool pinned)
{
    const Graph *g = f->g;
    uint32_t flags = pinned ? REMAT_PINNED : 0;
    if (!pinned && is_output(g, value))
        flags |= REMAT_OUTPUT;
    int64_t size =
        pinned ? 0 : (int64_t)round_up(value_bytes(&g->value.at[value]), f->target->align);
    f->number[value] = (Id)a->value.count;
    ARRAY_PUSH(g->arena, &a->value,
               (RematValue){.size = size,
                            .node = node,
                            .killer = REMAT_NONE,
                            .drop_at = REMAT_NONE,
                            .flags = flags});
}

/* What persists is read too where a later version takes its bytes: not after that. */
static void add_reads(Fit *f, Abstract *a, RematNode *node, const Cluster *c)
{
    node->read = (RematId)a->read.count;
    for (Id k = 0; k < c->operands; k++) {
        Id value = f->clusters->operand[c->operand + k];
        if (f->number[value] == NONE) {
            if (f->g->value.at[value].kind == VALUE_RESULT)
                continue;
            add_value(f, a, value, REMAT_NONE, true);
        }
        ARRAY_PUSH(f->g->arena, &a->read, f->number[value]);
    }
    node->reads = (RematId)a->read.count - node->read;
}

static void add_results(Fit *f, Abstract *a, RematNode *node, Id cluster, RematId id)
{
    const Cluster *c = &f->clusters->at[cluster];
    node->value = (RematId)a->value.count;
    for (Id k = 0; k < c->results; k++) {
        Id value = f->clusters->result[c->result + k];
        Id previous = f->g->value.at[value].previous;
        if (previous != NONE) { /* lies where the old version lay */
            if (f->number[previous] != NONE)
                a->value.at[f->number[previous]].killer = id;
            continue;
        }
        add_value(f, a, value, id, false);
        for (Id i = 0; i < c->operands; i++) {
            Id operand = f->clusters->operand[c->operand + i];
            if (may_overwrite(f->g, f->clusters, cluster, operand, value) &&
                !is_output(f->g, value))
                ARRAY_PUSH(f->g->arena, &a->in_place,
                           (RematInPlace){id, f->number[operand], f->number[value]});
        }
    }
    node->values = (RematId)a->value.count - node->value;
}

/* Hints: what is kept is never made again; what is to be recomputed, or lies inside a checkpointed
 * block, is not stored from the first step of the way back on. */
static void add_hints(Fit *f, Abstract *a, const bool *inner)
{
    RematId back = REMAT_NONE;
    for (RematId n = 0; n < a->problem.nodes && back == REMAT_NONE; n++) {
        const Cluster *c = &f->clusters->at[a->cluster[n]];
        if (f->g->node.at[f->clusters->node[c->node]].phase == PHASE_BACKWARD)
            back = n;
    }
    for (RematId n = 0; n < a->problem.nodes; n++) {
        const Cluster *c = &f->clusters->at[a->cluster[n]];
        for (Id k = 0; k < c->results; k++) {
            Id value = f->clusters->result[c->result + k];
            const Value *v = &f->g->value.at[value];
            if (v->hint & HINT_KEEP)
                a->problem.node[n].flags |= REMAT_ONCE;
            else if ((v->hint & HINT_RECOMPUTE || inner[value]) && back != REMAT_NONE && n < back &&
                     f->number[value] != NONE && !is_output(f->g, value))
                a->value.at[f->number[value]].drop_at = back;
        }
    }
}

static Abstract abstract(Fit *f, const Order *order, int program, bool once)
{
    Arena *arena = f->g->arena;
    Abstract a = {.cluster = order->cluster[program]};
    RematId count = order->count[program];
    a.problem.node = ARENA_ARRAY(arena, RematNode, count);
    memset(f->number, 0xff, f->g->value.count * sizeof *f->number);
    for (RematId n = 0; n < count; n++) {
        Id cluster = a.cluster[n];
        RematNode node = {.cost = cluster_cost(f->g, f->clusters, f->target, cluster)};
        node.work = (int64_t)round_up(f->target->workspace(f->target, f->g, f->clusters, cluster),
                                      f->target->align);
        node.flags = once || has_effect(f, cluster) ? REMAT_ONCE : 0;
        add_reads(f, &a, &node, &f->clusters->at[cluster]);
        add_results(f, &a, &node, cluster, n);
        a.problem.node[n] = node;
    }
    a.problem.nodes = count;
    if (!once)
        add_hints(f, &a, find_inner(f));
    a.problem.value = a.value.at;
    a.problem.values = (RematId)a.value.count;
    a.problem.read = a.read.at;
    a.problem.reads = (RematId)a.read.count;
    a.problem.in_place = a.in_place.at;
    a.problem.in_places = (RematId)a.in_place.count;
    a.problem.base = (int64_t)f->persistent;
    return a;
}

/* ---- Searching ------------------------------------------------------------------------------ */

static RematOptions search_options(const Fit *f, uint64_t budget, bool once)
{
    uint64_t effort = f->options->effort ? f->options->effort : EFFORT;
    return (RematOptions){.budget = (int64_t)budget,
                          .effort = once && effort > ORDER_EFFORT ? ORDER_EFFORT : effort,
                          .seconds = f->options->seconds};
}

/* One program of the order, replaced by what the search found. */
static void adopt(Fit *f, Order *order, int program, const Abstract *a, const RematResult *found)
{
    Id *cluster = ARENA_ARRAY(f->g->arena, Id, found->schedule.count);
    assert(remat_evaluate(&a->problem, &found->schedule).valid);
    for (size_t i = 0; i < found->schedule.count; i++)
        cluster[i] = a->cluster[found->schedule.node[i]];
    order->cluster[program] = cluster;
    order->count[program] = (Id)found->schedule.count;
    f->effort += found->effort;
    f->cut |= found->stop == REMAT_TIMED_OUT || found->stop == REMAT_CANCELLED;
}

/* Every program as small as the search makes it; `once`: by order alone. What is computed again
 * for nothing is then taken out, at that size. */
static Plan *smallest(Fit *f, const Order *given, bool once)
{
    Order order = *given;
    for (int p = 0; p < PROGRAMS; p++) {
        if (!given->count[p])
            continue;
        Abstract a = abstract(f, given, p, once);
        RematOptions how = search_options(f, 0, once);
        RematResult found = remat_minimize(&a.problem, &how, f->g->arena);
        if (!once && found.schedule.count > a.problem.nodes) {
            how.budget = found.peak;
            how.start = &found.schedule;
            how.starts = 1;
            RematResult cheaper = remat_solve(&a.problem, &how, f->g->arena);
            f->effort += found.effort;
            if (cheaper.fits)
                found = cheaper;
        }
        adopt(f, &order, p, &a, &found);
    }
    return plan_order(f->g, f->clusters, &order, f->target, f->options);
}

/* The cheapest within the budget; programs that fit as they stand are left alone. */
static Plan *cheapest(Fit *f, const Order *given, uint64_t budget, double *bound)
{
    Order order = *given;
    *bound = 0;
    for (int p = 0; p < PROGRAMS; p++) {
        if (!given->count[p])
            continue;
        Abstract a = abstract(f, given, p, false);
        RematOptions how = search_options(f, budget, false);
        RematResult found = remat_solve(&a.problem, &how, f->g->arena);
        adopt(f, &order, p, &a, &found);
        *bound += found.bound;
    }
    return plan_order(f->g, f->clusters, &order, f->target, f->options);
}

static bool better(const Plan *plan, const Plan *best, uint64_t budget)
{
    bool fits = plan->arena <= budget, fitted = best->arena <= budget;
    if (fits != fitted)
        return fits;
    if (!fits)
        return plan->arena < best->arena;
    return plan->cost < best->cost || (plan->cost == best->cost && plan->arena < best->arena);
}

/* Packing needs more than the live bytes: asks for less until it fits. */
static Plan *search(Fit *f, const Order *given, Plan *best, uint64_t budget)
{
    uint64_t ask = budget;
    for (int round = 0; round < ROUNDS && ask > f->persistent; round++) {
        double bound;
        Plan *plan = cheapest(f, given, ask, &bound);
        if (round == 0)
            best->cost_bound = plan->cost_bound = bound;
        plan->cost_bound = best->cost_bound;
        if (better(plan, best, budget))
            best = plan;
        if (plan->arena <= budget)
            break;
        uint64_t over = plan->arena - budget;
        ask = over + over / 4 < ask ? ask - over - over / 4 : 0;
    }
    return best;
}

Plan *fit(const Graph *g, const Clusters *clusters, const Target *target,
          const PlanOptions *options)
{
    Order given = order_given(g, clusters);
    Plan *best = plan_order(g, clusters, &given, target, options);
    double least = best->cost;
    Fit f = {.g = g,
             .clusters = clusters,
             .target = target,
             .options = options,
             .persistent = best->persistent,
             .number = ARENA_ARRAY(g->arena, Id, g->value.count)};
    uint64_t budget = options->budget ? options->budget : UINT64_MAX;
    best->cost_bound = least;
    if (best->arena > best->floor && (best->arena > budget || !options->budget)) {
        Plan *ordered = smallest(&f, &given, true); /* order alone costs nothing */
        ordered->cost_bound = least;
        if (ordered->arena < best->arena)
            best = ordered;
    }
    if ((best->arena > budget || options->smallest) && !options->no_recompute) {
        Plan *small = smallest(&f, &given, false);
        small->cost_bound = least;
        if (options->smallest)
            best = small->arena < best->arena ? small : best;
        else
            best = search(&f, &given, better(small, best, budget) ? small : best, budget);
    }
    best->least_cost = least;
    best->effort = f.effort;
    best->cut = f.cut;
    return best;
}
