/* Plans of the candidates, and the best of them.
 *
 * Each candidate has a least cost, that of its plan without recomputation. The cheapest is planned
 * first, and the next only where it could still be cheaper than what was found. What cannot be of
 * use for its size (its floor is above the budget, or above a plan that is known) is not searched.
 */
#include "planner/choose.h"

#include "frontend/base/size.h"

#include <math.h>

/* ---- One candidate -------------------------------------------------------------------------- */

static void drop(ChoiceTrial *trial)
{
    if (trial->arena)
        arena_free(trial->arena);
    lowered_release(trial->lowered);
    *trial = (ChoiceTrial){0};
}

static bool is_valid(const ChoiceTrial *trial)
{
    return trial->plan && trial->search.broken_hint == NONE;
}

static uint64_t arena_of(const ChoiceTrial *trial)
{
    return is_valid(trial) ? trial->plan->arena[SPACE_ARENA] : UINT64_MAX;
}

/* Epilogues seldom cost less in one half of the budgets and more in the other, so the ladder is
 * climbed for both only where the second goes clearly farther down. That hangs on no budget, or a
 * larger one could cost more. */
uint64_t trials_rival(const Chooser *s, Id id)
{
    Choice other = s->candidate.at[id].choice;
    other.epilogues = !other.epilogues;
    for (size_t i = 0; i < s->candidate.count; i++)
        if (choice_equals(s->candidate.at[i].choice, other))
            return s->candidate.at[i].smallest;
    return 0;
}

static ChoiceTrial plan_candidate(Chooser *s, Id id, const PlanOptions *how)
{
    Candidate *c = &s->candidate.at[id];
    ChoiceTrial t = {
        .arena = arena_new(), .lowered = c->lowered, .clusters = c->clusters, .choice = c->choice};
    PlanOptions own = *how;
    own.ring = c->choice.ring;
    own.rival = trials_rival(s, id);
    t.plan = plan_make(t.arena, c->lowered->graph, c->clusters, s->target, &own, &t.search);
    c->lowered->users++;
    c->hopeless = t.search.hopeless;
    c->floor = t.plan->floor;
    c->smallest = t.search.least;
    c->fits = is_valid(&t) && how->budget && t.plan->arena[SPACE_ARENA] <= how->budget;
    c->cost = t.plan->cost;
    choose_say(s, "planned  micro-batches %u, loss %s, epilogues %s: %s%s, %.4g s, effort %llu",
               t.plan->program[PROGRAM_STEP].times, c->choice.chunked_loss ? "chunked" : "whole",
               c->choice.epilogues ? "fused" : "apart", c->hopeless ? "no less than " : "",
               size_text(s->arena, c->hopeless ? t.plan->floor : t.plan->arena[SPACE_ARENA]),
               t.plan->cost, (unsigned long long)t.search.effort);
    return t;
}

static bool is_better(const ChoiceTrial *now, const ChoiceTrial *best, const PlanOptions *how)
{
    uint64_t budget = how->budget ? how->budget : UINT64_MAX;
    if (!is_valid(best) || !is_valid(now))
        return is_valid(now) || !best->plan;
    uint64_t arena = arena_of(now), other = arena_of(best);
    bool fits = arena <= budget, fitted = other <= budget;
    if (fits != fitted)
        return fits;
    if ((!how->budget || !fits) && arena != other)
        return arena < other;
    double cost = now->plan->cost, known = best->plan->cost;
    return cost < known || (cost == known && arena < other);
}

static void keep_better(ChoiceTrial *best, ChoiceTrial *now, const PlanOptions *how)
{
    bool better = is_better(now, best, how);
    drop(better ? best : now);
    if (better)
        *best = *now;
}

/* Whether no later candidate can be better. */
static bool is_enough(const ChoiceTrial *best, const Candidate *next, const PlanOptions *how)
{
    if (!how->budget || arena_of(best) > how->budget)
        return false;
    return how->smallest || next->least >= best->plan->cost * (1 - 1e-9);
}

/* What no plan costs less than, with one more candidate that may have some. */
static double lower_bound(double bound, const ChoiceTrial *trial, const PlanOptions *how)
{
    const Search *search = &trial->search;
    if (!is_valid(trial) || (how->budget && trial->plan->floor > how->budget))
        return bound;
    double own = search->cost_bound > search->least_cost ? search->cost_bound : search->least_cost;
    return own < bound ? own : bound;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static bool is_within(const ChoiceTrial *trial, const PlanOptions *how)
{
    return arena_of(trial) <= (how->budget ? how->budget : UINT64_MAX);
}

/* Any plan within the budget, or else the smallest, in equal parts of half the time that there is:
 * what is searched for longest may be what does not fit. */
static ChoiceTrial try_any(Chooser *s)
{
    ChoiceTrial best = {0};
    PlanOptions how = *s->options;
    how.smallest = true;
    how.seconds = choose_seconds(s) / 2 / (double)candidates_open(s);
    bool *seen = ARENA_ARRAY(s->arena, bool, 2 * s->candidate.count);
    for (Id i; (i = candidates_next(s, true)) != NONE && !choose_stopped(s);) {
        ChoiceTrial now = plan_candidate(s, i, &how);
        keep_better(&best, &now, s->options);
        seen[i] = s->candidate.at[i].tried = true;
        if (is_within(&best, &how))
            break;
    }
    for (size_t i = 0; i < s->candidate.count; i++) /* all of it was but a first look */
        if (seen[i])
            s->candidate.at[i].tried = false;
    return best;
}

/* Plans one, where it can be of use beside the best so far. */
static void try_one(Chooser *s, Id id, ChoiceTrial *best)
{
    const PlanOptions *o = s->options;
    PlanOptions how = *o;
    how.seconds = choose_seconds(s);
    if (o->budget || o->smallest)
        how.most = o->budget ? o->budget : is_valid(best) ? arena_of(best) : o->most;
    if (o->budget && !o->smallest && is_valid(best) && arena_of(best) <= o->budget)
        how.enough = best->plan->cost;
    ChoiceTrial now = plan_candidate(s, id, &how);
    Candidate *c = &s->candidate.at[id];
    s->bound = lower_bound(s->bound, &now, o);
    if (is_valid(&now)) /* with what hints ask for */
        c->least = now.search.least_cost;
    c->tried = true;
    if (!now.search.hopeless || !o->budget) /* otherwise its graph is kept: see try_hopeless */
        candidate_close(c);
    if (now.search.hopeless)
        drop(&now);
    else
        keep_better(best, &now, o);
}

/* The best of those that are open, as far as they can be of use. */
static ChoiceTrial try_all(Chooser *s)
{
    ChoiceTrial best = {0};
    for (Id i; (i = candidates_next(s, false)) != NONE;) {
        if (is_enough(&best, &s->candidate.at[i], s->options))
            break;
        if (is_valid(&best) && choose_stopped(s)) {
            s->cut = true;
            break;
        }
        if (s->candidate.at[i].built)
            try_one(s, i, &best);
        else
            candidate_lower(s, i);
    }
    return best;
}

/* What was not searched: the one of the least floor first. Its plan then rules out those whose
 * floor is above it. */
static Id next_hopeless(const Chooser *s)
{
    Id best = NONE;
    for (Id i = 0; i < s->candidate.count; i++) {
        const Candidate *c = &s->candidate.at[i];
        if (!c->hopeless || !c->lowered)
            continue;
        const Candidate *known = best == NONE ? NULL : &s->candidate.at[best];
        if (!known || c->floor < known->floor ||
            (c->floor == known->floor && c->choice.micro > known->choice.micro))
            best = i;
    }
    return best;
}

/* Nothing is within the budget: what cannot be is searched too, where it could be the smallest. */
static void try_hopeless(Chooser *s, ChoiceTrial *best)
{
    for (Id i; (i = next_hopeless(s)) != NONE;) {
        if (is_valid(best) && choose_stopped(s)) {
            s->cut = true;
            return;
        }
        PlanOptions how = *s->options;
        how.seconds = choose_seconds(s);
        how.most = is_valid(best) ? arena_of(best) : 0;
        ChoiceTrial now = plan_candidate(s, i, &how);
        candidate_close(&s->candidate.at[i]);
        if (now.search.hopeless)
            drop(&now);
        else
            keep_better(best, &now, s->options);
    }
}

/* No candidate costs less: all that is known where the search for the best was cut. */
static double least_of_all(const Chooser *s, double least)
{
    for (size_t i = 0; i < s->candidate.count; i++)
        if (!s->candidate.at[i].gone && s->candidate.at[i].least < least)
            least = s->candidate.at[i].least;
    return least;
}

/* The best of those that are open. Where time is short and something else could be done with it, it
 * begins with whatever fits. */
static ChoiceTrial try_open(Chooser *s, bool last)
{
    ChoiceTrial any = {0};
    const PlanOptions *o = s->options;
    s->seconds = last ? o->seconds : o->seconds / 2;
    if (o->seconds > 0 && o->budget && (candidates_open(s) > 1 || !last))
        any = try_any(s);
    if (is_within(&any, o))
        s->seconds = o->seconds;
    ChoiceTrial best = try_all(s);
    bool cut = s->cut || best.search.cut;
    if (!is_valid(&any) || !cut || !is_better(&any, &best, o)) {
        drop(&any);
        return best;
    }
    drop(&best);
    s->cut = true;
    s->bound = least_of_all(s, any.search.least_cost);
    return any;
}

ChoiceTrial trials_best(Chooser *s)
{
    const PlanOptions *o = s->options;
    s->bound = INFINITY;
    ChoiceTrial best = try_open(s, !(s->micro_open || o->precision_auto) || !o->budget);
    bool broken = best.plan && !is_valid(&best);
    s->seconds = o->seconds;
    while (!broken && !is_within(&best, o) && !choose_stopped(s) && candidates_resort(s)) {
        s->cut |= best.search.cut;
        ChoiceTrial other = try_open(s, true);
        keep_better(&best, &other, o);
    }
    bool useful = !o->smallest && !(o->most && o->most <= o->budget);
    if (!is_within(&best, o) && useful)
        try_hopeless(s, &best);
    return best;
}
