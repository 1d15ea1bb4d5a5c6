/* Chooses how the model is lowered: in how many micro-batches, whether losses of products run in
 * slices, and whether elementwise ops run behind products.
 *
 * The first two cost work and save memory, so both wait for a budget to ask for them: without one,
 * nothing is sliced, and nothing cut that the model or the user does not cut. Behind products ops
 * cost least and mostly take the fewest bytes, but not always: the operands of both have to be
 * there at once. With a budget, each way to lower the model has a least cost, that of its plan
 * without recomputation. The cheapest is planned first, and the next only where it could still be
 * cheaper than what was found. Every way has plans that cost no more with a larger budget, so what
 * is chosen costs no more either.
 */
#include "frontend/base/clock.h"
#include "frontend/command/attempt.h"
#include "frontend/command/watch.h"
#include "planner/remat/remat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What there is to choose from ----------------------------------------------------------- */

static bool accumulate_is_auto(const Subject *s)
{
    const Options *o = s->options;
    const Train *train = &s->graph->train;
    if (!train->present || o->infer || o->accumulate)
        return false;
    for (size_t i = 0; i < train->setting.count && !o->accumulate_auto; i++)
        if (strcmp(train->setting.at[i].name, "accumulate") == 0)
            return train->setting.at[i].value.is_word;
    return o->accumulate_auto;
}

static int64_t batch_of(const Subject *s, const char *name, int64_t value)
{
    for (size_t i = 0; i < s->graph->dimension.count; i++) {
        const Dimension *d = &s->graph->dimension.at[i];
        if (d->batch)
            return name && strcmp(d->name, name) == 0 ? value : d->value;
    }
    return 1;
}

static bool is_sliced(const Graph *g)
{
    for (size_t n = 0; n < g->node.count; n++)
        if (strcmp(g->node.at[n].op->name, "product_loss") == 0)
            return true;
    return false;
}

typedef struct {
    const Subject *s;
    const char *name;
    int64_t value;
    ARRAY(Candidate) list;
} Listing;

static bool any_tail(const Lowered *model)
{
    for (Id i = 0; i < model->clusters->count; i++)
        if (cluster_has_tail(model->graph, model->clusters, &model->clusters->at[i]))
            return true;
    return false;
}

static void add_clusters(Listing *l, Choice choice, const Graph *g, const Clusters *clusters)
{
    ARRAY_PUSH(l->s->arena, &l->list,
               (Candidate){.choice = choice, .least = plan_cost(g, clusters, &l->s->target)});
}

/* Adds a way to lower the model, with ops behind products and without; false where there is none,
 * or where it changes nothing. */
static bool add(Listing *l, Choice choice)
{
    Lowered model = lower_again(l->s, l->name, l->value, choice);
    bool good = model.graph &&
                (!choice.sliced || is_sliced(model.graph) || l->s->options->slices == WHEN_ALWAYS);
    if (good)
        add_clusters(l, choice, model.graph, model.clusters);
    if (good && l->s->options->fuse == WHEN_AUTO && any_tail(&model)) {
        Target target = l->s->target;
        target.tails = false;
        choice.loops = true;
        add_clusters(l, choice, model.graph, fuse(model.graph, &target));
    }
    lowered_free(&model);
    return good;
}

static bool add_both(Listing *l, uint32_t times)
{
    uint32_t slices = l->s->options->slices;
    bool good = slices != WHEN_ALWAYS && add(l, (Choice){times, false, false});
    if (slices == WHEN_ALWAYS || (slices == WHEN_AUTO && good))
        good |= add(l, (Choice){times, true, false});
    return good;
}

static int by_least(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->least != y->least)
        return x->least < y->least ? -1 : 1;
    if (x->choice.times != y->choice.times)
        return x->choice.times < y->choice.times ? -1 : 1;
    if (x->choice.sliced != y->choice.sliced)
        return (int)x->choice.sliced - (int)y->choice.sliced;
    return (int)x->choice.loops - (int)y->choice.loops;
}

/* Micro-batches: divisors of the batch, each at least twice the one before it. */
Candidates list_candidates(const Subject *s, const char *name, int64_t value, uint32_t first)
{
    Listing l = {s, name, value, {0}};
    int64_t batch = batch_of(s, name, value), last = 0;
    if (first == 1 && !accumulate_is_auto(s))
        add_both(&l, s->options->accumulate);
    else
        for (int64_t times = first; times <= batch && times <= 1 << 20; times++) {
            if (times < 1 || batch % times || times < 2 * last)
                continue;
            last = times;
            if (!add_both(&l, (uint32_t)times))
                break;
        }
    Candidates from = {.at = l.list.at, .count = l.list.count};
    if (from.count)
        qsort(from.at, from.count, sizeof *from.at, by_least);
    return from;
}

double least_cost(const Subject *s, const char *name, int64_t value)
{
    Lowered model = lower_again(s, name, value, (Choice){0, false, false});
    double cost = model.graph ? plan_cost(model.graph, model.clusters, &s->target) : 0;
    lowered_free(&model);
    return cost;
}

/* ---- The best of them ----------------------------------------------------------------------- */

static bool is_better(const Outcome *now, const Outcome *best, const PlanOptions *how)
{
    uint64_t budget = how->budget ? how->budget : UINT64_MAX;
    if (!best->valid || !now->valid)
        return now->valid;
    bool fits = now->arena <= budget, fitted = best->arena <= budget;
    if (fits != fitted)
        return fits;
    if ((!how->budget || !fits) && now->arena != best->arena)
        return now->arena < best->arena;
    return now->cost < best->cost || (now->cost == best->cost && now->arena < best->arena);
}

/* Whether no later candidate can be better. */
static bool is_enough(const Outcome *best, const Candidate *next, const PlanOptions *how)
{
    if (!best->valid || !how->budget || best->arena > how->budget)
        return false;
    return how->smallest || next->least >= best->cost * (1 - 1e-9);
}

/* What no plan costs less than, with one more candidate that may have some. */
static double lower_bound(double bound, const Outcome *outcome, const PlanOptions *how)
{
    const Plan *plan = outcome->plan;
    if (!outcome->valid || (how->budget && plan->floor > how->budget))
        return bound;
    double own = plan->cost_bound > plan->least_cost ? plan->cost_bound : plan->least_cost;
    return own < bound ? own : bound;
}

/* Any plan within the budget, or else the smallest, in equal parts of half the time that there is:
 * what is searched for longest may be what does not fit. */
static Outcome attempt_any(const Subject *s, const char *name, int64_t value,
                           const Candidates *from, const PlanOptions *how)
{
    Outcome best = {.valid = false};
    PlanOptions now = *how;
    now.smallest = true;
    now.seconds = how->seconds / 2 / (double)from->count;
    for (size_t i = 0; i < from->count && !watch_stopped(); i++) {
        Outcome outcome = attempt(s, name, value, from->at[i].choice, &now);
        bool better = is_better(&outcome, &best, how);
        outcome_drop(better ? &best : &outcome);
        if (better)
            best = outcome;
        if (best.valid && best.arena <= how->budget)
            break;
    }
    return best;
}

static Outcome attempt_all(const Subject *s, const char *name, int64_t value, Candidates *from,
                           const PlanOptions *how)
{
    Outcome best = {.valid = false};
    PlanOptions now = *how;
    double begin = clock_seconds(), bound = INFINITY;
    bool cut = false;
    for (size_t i = 0; i < from->count && !is_enough(&best, &from->at[i], how); i++) {
        double left = how->seconds - (clock_seconds() - begin);
        if (best.valid && ((how->seconds > 0 && left <= 0) || watch_stopped())) {
            cut = true;
            break;
        }
        now.seconds = how->seconds > 0 ? left : 0;
        Candidate *c = &from->at[i];
        Outcome outcome = attempt(s, name, value, c->choice, &now);
        c->tried = true;
        c->fits = outcome.valid && how->budget && outcome.arena <= how->budget;
        c->cost = outcome.cost;
        c->least =
            outcome.valid ? outcome.plan->least_cost : c->least; /* with what hints ask for */
        bound = lower_bound(bound, &outcome, how);
        bool better = is_better(&outcome, &best, how);
        outcome_drop(better ? &best : &outcome);
        if (better)
            best = outcome;
    }
    if (best.valid && bound < best.plan->cost_bound)
        best.plan->cost_bound = bound;
    if (best.valid)
        best.plan->cut |= cut;
    return best;
}

Outcome attempt_best(const Subject *s, const char *name, int64_t value, Candidates *from,
                     const PlanOptions *how)
{
    Outcome any = {.valid = false};
    PlanOptions now = *how;
    double begin = clock_seconds();
    if (how->seconds > 0 && how->budget && from->count > 1)
        any = attempt_any(s, name, value, from, how);
    double left = how->seconds - (clock_seconds() - begin);
    now.seconds = how->seconds > 0 ? (left > 0.01 ? left : 0.01) : 0;
    Outcome best = attempt_all(s, name, value, from, &now);
    bool better = any.valid && best.valid && best.plan->cut && is_better(&any, &best, how);
    outcome_drop(better ? &best : &any);
    if (!better)
        return best;
    any.plan->cut = true;
    any.plan->cost_bound = any.plan->least_cost; /* of all of them no more is known */
    for (size_t i = 0; i < from->count; i++)
        if (from->at[i].least < any.plan->cost_bound)
            any.plan->cost_bound = from->at[i].least;
    return any;
}

Outcome attempt_micro(const Subject *s, const PlanOptions *how)
{
    Candidates from = list_candidates(s, NULL, 0, 2);
    Outcome best = attempt_best(s, NULL, 0, &from, how);
    if (!best.valid || best.arena > how->budget)
        best.choice.times = 0;
    return best;
}

/* ---- Why ------------------------------------------------------------------------------------ */

/* What the candidates come to that are otherwise in one respect. */
static const char *otherwise(const Subject *s, const Candidates *from, const Candidate *best,
                             bool (*other)(const Candidate *, const Candidate *))
{
    const Candidate *cheapest = NULL;
    bool untried = false, refused = false;
    for (size_t i = 0; i < from->count; i++) {
        const Candidate *c = &from->at[i];
        if (!other(c, best))
            continue;
        untried |= !c->tried;
        refused |= c->tried && !c->fits;
        if (c->fits && (!cheapest || c->cost < cheapest->cost))
            cheapest = c;
    }
    if (cheapest)
        return arena_printf(s->arena, "would take %.2f%% more time",
                            100 * (cheapest->cost / best->cost - 1));
    if (untried && watch_stopped())
        return "was not tried before the search was cut";
    if (untried && refused) /* some of them with other choices beside */
        return "would not fit, or take more time";
    return untried ? "would take more time" : "would not fit";
}

static bool is_stored(const Candidate *c, const Candidate *best)
{
    return best->choice.sliced && !c->choice.sliced;
}

static bool is_cut(const Candidate *c, const Candidate *best)
{
    return !best->choice.sliced && c->choice.sliced;
}

static bool has_fewer(const Candidate *c, const Candidate *best)
{
    return c->choice.times < best->choice.times;
}

static bool has_more(const Candidate *c, const Candidate *best)
{
    return c->choice.times > best->choice.times;
}

static bool has_tails(const Candidate *c, const Candidate *best)
{
    return best->choice.loops && !c->choice.loops;
}

static bool has_loops(const Candidate *c, const Candidate *best)
{
    return !best->choice.loops && c->choice.loops;
}

static bool any(const Candidates *from, const Candidate *best,
                bool (*other)(const Candidate *, const Candidate *))
{
    for (size_t i = 0; i < from->count; i++)
        if (other(&from->at[i], best))
            return true;
    return false;
}

static const Candidate *find_candidate(const Candidates *from, Choice choice)
{
    for (size_t i = 0; i < from->count; i++)
        if (choice_is(from->at[i].choice, choice))
            return &from->at[i];
    return from->at;
}

static void explain(const Subject *s, const Candidates *from, Chosen *chosen)
{
    const Candidate *best = find_candidate(from, chosen->choice);
    if (any(from, best, is_stored))
        chosen->slices = arena_printf(s->arena, "logits are never stored: storing them %s",
                                      otherwise(s, from, best, is_stored));
    else if (any(from, best, is_cut))
        chosen->slices = arena_printf(s->arena, "logits are stored: slices %s",
                                      otherwise(s, from, best, is_cut));
    if (any(from, best, has_fewer))
        chosen->micro = arena_printf(s->arena, "fewer %s", otherwise(s, from, best, has_fewer));
    else if (any(from, best, has_more))
        chosen->micro = arena_printf(s->arena, "more %s", otherwise(s, from, best, has_more));
    if (any(from, best, has_tails))
        chosen->tails =
            arena_printf(s->arena, "elementwise ops run on their own: behind products %s",
                         otherwise(s, from, best, has_tails));
    else if (any(from, best, has_loops))
        chosen->tails =
            arena_printf(s->arena, "elementwise ops run behind products: on their own %s",
                         otherwise(s, from, best, has_loops));
}

Chosen choose(const Subject *s, const PlanOptions *how)
{
    const Options *o = s->options;
    Chosen chosen = {.choice = {o->accumulate, o->slices == WHEN_ALWAYS, false}};
    if (o->pareto || (!how->budget && !how->smallest))
        return chosen; /* nothing asks for less memory, or the table will show it all */
    Candidates from = list_candidates(s, NULL, 0, 1);
    if (from.count < 2) {
        chosen.choice = from.count ? from.at[0].choice : chosen.choice;
        return chosen;
    }
    Outcome best = attempt_best(s, NULL, 0, &from, how);
    if (!best.valid)
        return chosen;
    chosen.choice = best.choice;
    chosen.plan = best.plan;
    arena_adopt(s->arena, best.model.arena);
    explain(s, &from, &chosen);
    return chosen;
}
