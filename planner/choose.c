/* From a model to a plan: chooses in how many micro-batches it runs, whether the loss of a product
 * is computed in chunks, and whether elementwise ops run inside products.
 *
 * The first two cost time and save memory, so both wait for a budget to ask for them: without one
 * the model is built as it stands. Epilogues cost least and mostly take the fewest bytes, but not
 * always: the operands of both have to be there at once.
 *
 * With a budget, each choice has a least cost, that of its plan without recomputation. The cheapest
 * is planned first, and the next only where it could still be cheaper than what was found. Every
 * choice has plans that cost no more with a larger budget, so what is chosen costs no more either.
 * A model is lowered for a choice when that choice is the next to be looked at: until then, its
 * least cost is bounded by that of fewer micro-batches, since dividing a step saves none of its
 * time. What is lowered is planned from the same graph, and what cannot be of use for its size (its
 * floor is above the budget, or above a plan that is known) is not searched.
 */
#include "frontend/base/clock.h"
#include "frontend/base/size.h"
#include "planner/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A graph, shared by the choices that differ in epilogues alone. */
typedef struct {
    Arena *arena;
    Graph *graph;
    uint32_t users; /* candidates that may still be planned, and plans that are kept */
} Lowered;

typedef struct {
    Choice choice;
    Lowered *lowered; /* NULL: not yet, or not any more */
    Clusters *clusters;
    double least; /* no plan of it costs less, in seconds; its own once it was built */
    bool built;
    bool gone; /* the model cannot be lowered so, or that would change nothing */
    bool tried, fits;
    bool hopeless; /* no plan of it is within the budget: it was not searched */
    double cost;   /* of the plan that was tried */
} Candidate;

/* A candidate that was planned. */
typedef struct {
    Built built;
    Lowered *lowered;
} Trial;

typedef struct {
    const Model *model;
    const Target *target;
    const PlanOptions *options;
    Diag *diag; /* of the first graph; the others are lowered quietly: NULL */
    Arena *arena;
    ARRAY(Candidate) candidate;
    double least_cost; /* of the model as it stands; 0: not known */
    double begin;
} Chooser;

Choice choice_asked(const Target *target, const PlanOptions *options)
{
    return (Choice){.micro = options->micro_auto && !options->micro ? 1 : options->micro,
                    .chunked_loss = options->chunked_loss == WHEN_ALWAYS,
                    .epilogues = target->epilogues && options->epilogues != WHEN_NEVER};
}

static bool is_stopped(const Chooser *s)
{
    const PlanOptions *o = s->options;
    return (o->cancel && *o->cancel) ||
           (o->seconds > 0 && clock_seconds() - s->begin >= o->seconds);
}

static double seconds_left(const Chooser *s)
{
    double left = s->options->seconds - (clock_seconds() - s->begin);
    return s->options->seconds <= 0 ? 0 : left > 0.01 ? left : 0.01;
}

__attribute__((format(printf, 2, 3))) static void say(const Chooser *s, const char *format, ...)
{
    if (!s->options->say)
        return;
    va_list arguments;
    va_start(arguments, format);
    s->options->say(arena_vprintf(s->arena, format, arguments));
    va_end(arguments);
}

/* ---- Candidates ----------------------------------------------------------------------------- */

static bool has_chunked_loss(const Graph *g)
{
    for (size_t n = 0; n < g->node.count; n++)
        if (g->node.at[n].op->flags & OP_CHUNKED)
            return true;
    return false;
}

static bool has_epilogue(const Graph *g, const Clusters *clusters)
{
    for (Id i = 0; i < clusters->count; i++)
        if (cluster_has_epilogue(g, clusters, &clusters->at[i]))
            return true;
    return false;
}

static void add(Chooser *s, Choice choice)
{
    ARRAY_PUSH(s->arena, &s->candidate, (Candidate){.choice = choice});
}

static bool is_open(const Candidate *c)
{
    return !c->gone && !c->tried;
}

/* It cannot be lowered so: then neither with more micro-batches; or nothing is there to be
 * computed in chunks: then nowhere. */
static void drop(Chooser *s, Choice choice, bool unchunked)
{
    bool first = !choice.chunked_loss || s->options->chunked_loss == WHEN_ALWAYS;
    for (size_t i = 0; i < s->candidate.count; i++) {
        Candidate *c = &s->candidate.at[i];
        bool same = choice_equals(c->choice, choice);
        bool more = c->choice.micro >= choice.micro && first;
        if (!c->built && (same || (unchunked ? c->choice.chunked_loss : more)))
            c->gone = true;
    }
}

/* With more micro-batches it costs no less. */
static void raise_bounds(Chooser *s, Choice choice, double least)
{
    for (size_t i = 0; i < s->candidate.count; i++) {
        Candidate *c = &s->candidate.at[i];
        if (!c->built && c->choice.chunked_loss == choice.chunked_loss &&
            c->choice.micro > choice.micro && c->least < least)
            c->least = least;
    }
}

static bool is_as_it_stands(const Chooser *s, const Graph *g, Choice choice)
{
    return (!choice.micro || choice.micro == train_stated(g)) && !choice.chunked_loss &&
           choice.epilogues == choice_asked(s->target, s->options).epilogues;
}

/* The clusters of a candidate whose graph is there. */
static void cluster(Chooser *s, size_t i, Lowered *lowered)
{
    Candidate *c = &s->candidate.at[i];
    c->built = true;
    c->lowered = lowered;
    lowered->users++;
    c->clusters = fuse(lowered->arena, lowered->graph, c->choice.epilogues);
    c->least = plan_cost(lowered->graph, c->clusters, s->target);
    say(s, "fused    into %u clusters, %.4g s at least", c->clusters->count, c->least);
    if (is_as_it_stands(s, lowered->graph, c->choice))
        s->least_cost = c->least;
}

static void lower_candidate(Chooser *s, size_t i)
{
    Choice choice = s->candidate.at[i].choice;
    Lowered *lowered = ARENA_NEW(s->arena, Lowered);
    lowered->arena = arena_new();
    Diag *diag = s->diag ? s->diag : diag_new(lowered->arena, NULL, false);
    s->diag = NULL;
    lowered->graph = model_lower(s->model, &choice, lowered->arena, diag);
    if (lowered->graph && !supports(lowered->graph, s->target))
        lowered->graph = NULL;
    const Graph *g = lowered->graph;
    bool unchunked =
        g && choice.chunked_loss && !has_chunked_loss(g) && s->options->chunked_loss != WHEN_ALWAYS;
    if (!g || unchunked) {
        drop(s, choice, unchunked);
        arena_free(lowered->arena);
        return;
    }
    say(s, "lowered  %s: %zu nodes, %zu values, micro-batches %u, loss %s", g->name, g->node.count,
        g->value.count, program_times(g, PROGRAM_STEP), choice.chunked_loss ? "chunked" : "whole");
    cluster(s, i, lowered);
    raise_bounds(s, choice, s->candidate.at[i].least);
    bool open = s->options->budget || s->options->smallest;
    if (open && choice.epilogues && s->options->epilogues == WHEN_AUTO &&
        has_epilogue(g, s->candidate.at[i].clusters)) {
        choice.epilogues = false;
        add(s, choice);
        cluster(s, s->candidate.count - 1, lowered);
    }
}

static int64_t batch_of(const Graph *g)
{
    for (size_t i = 0; i < g->dimension.count; i++)
        if (g->dimension.at[i].batch)
            return g->dimension.at[i].value;
    return 1;
}

/* What else may be chosen than the first. Micro-batches: divisors of the batch, each at least twice
 * the one before it. */
static void list_others(Chooser *s)
{
    const Graph *g = s->candidate.at[0].lowered->graph;
    Choice choice = s->candidate.at[0].choice;
    bool chunks = s->options->chunked_loss == WHEN_AUTO;
    bool trains = model_trains(s->model);
    if (trains && (s->options->micro_auto || (!choice.micro && train_is_auto(g)))) {
        int64_t batch = batch_of(g), last = choice.micro ? choice.micro : 1;
        choice.micro = (uint32_t)last;
        for (size_t i = 0; i < s->candidate.count; i++) /* in so many words */
            s->candidate.at[i].choice.micro = choice.micro;
        for (int64_t times = 2 * last; times <= batch && times <= 1 << 20; times++)
            /* cppcheck-suppress zerodiv ; times begins at 2 */
            if (batch % times == 0 && times >= 2 * last) {
                last = times;
                add(s, (Choice){(uint32_t)times, choice.chunked_loss, choice.epilogues});
                if (chunks)
                    add(s, (Choice){(uint32_t)times, true, choice.epilogues});
            }
        raise_bounds(s, choice, s->candidate.at[0].least);
    }
    if (chunks && trains)
        add(s, (Choice){choice.micro, true, choice.epilogues});
}

static bool is_before(const Candidate *x, const Candidate *y)
{
    if (x->least != y->least)
        return x->least < y->least;
    if (x->choice.micro != y->choice.micro)
        return x->choice.micro < y->choice.micro;
    if (x->choice.chunked_loss != y->choice.chunked_loss)
        return y->choice.chunked_loss;
    return x->choice.epilogues && !y->choice.epilogues;
}

/* The one that may cost least of those that are open; lowered, where `so`. NONE: there is none. */
static Id next_candidate(Chooser *s, bool so)
{
    for (;;) {
        Id best = NONE;
        for (Id i = 0; i < s->candidate.count; i++)
            if (is_open(&s->candidate.at[i]) &&
                (best == NONE || is_before(&s->candidate.at[i], &s->candidate.at[best])))
                best = i;
        if (best == NONE || !so || s->candidate.at[best].built)
            return best;
        lower_candidate(s, best);
    }
}

static size_t count_open(const Chooser *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->candidate.count; i++)
        count += is_open(&s->candidate.at[i]);
    return count;
}

/* ---- Plans of them -------------------------------------------------------------------------- */

static void release(Lowered *lowered)
{
    if (lowered && --lowered->users == 0)
        arena_free(lowered->arena);
}

static void drop_trial(Trial *trial)
{
    if (trial->built.arena)
        arena_free(trial->built.arena);
    release(trial->lowered);
    *trial = (Trial){0};
}

static bool is_valid(const Trial *trial)
{
    return trial->built.plan && trial->built.search.broken_hint == NONE;
}

static uint64_t arena_of(const Trial *trial)
{
    return is_valid(trial) ? trial->built.plan->arena : UINT64_MAX;
}

static Trial plan_candidate(Chooser *s, Id id, const PlanOptions *how)
{
    Candidate *c = &s->candidate.at[id];
    Trial trial = {.lowered = c->lowered};
    Built *b = &trial.built;
    *b = (Built){.arena = arena_new(),
                 .graph = c->lowered->graph,
                 .clusters = c->clusters,
                 .choice = c->choice};
    b->plan = plan_make(b->arena, b->graph, b->clusters, s->target, how, &b->search);
    c->lowered->users++;
    c->hopeless = b->search.hopeless;
    c->fits = is_valid(&trial) && how->budget && b->plan->arena <= how->budget;
    c->cost = b->plan->cost;
    say(s, "planned  micro-batches %u, loss %s, epilogues %s: %s%s, %.4g s, effort %llu",
        b->plan->program[PROGRAM_STEP].times, c->choice.chunked_loss ? "chunked" : "whole",
        c->choice.epilogues ? "fused" : "apart", c->hopeless ? "no less than " : "",
        size_text(s->arena, c->hopeless ? b->plan->floor : b->plan->arena), b->plan->cost,
        (unsigned long long)b->search.effort);
    return trial;
}

static void close_candidate(Candidate *c)
{
    c->tried = true;
    release(c->lowered);
    c->lowered = NULL;
}

static bool is_better(const Trial *now, const Trial *best, const PlanOptions *how)
{
    uint64_t budget = how->budget ? how->budget : UINT64_MAX;
    if (!is_valid(best) || !is_valid(now))
        return is_valid(now) || !best->built.plan;
    uint64_t arena = arena_of(now), other = arena_of(best);
    bool fits = arena <= budget, fitted = other <= budget;
    if (fits != fitted)
        return fits;
    if ((!how->budget || !fits) && arena != other)
        return arena < other;
    double cost = now->built.plan->cost, known = best->built.plan->cost;
    return cost < known || (cost == known && arena < other);
}

static void keep_better(Trial *best, Trial *now, const PlanOptions *how)
{
    bool better = is_better(now, best, how);
    drop_trial(better ? best : now);
    if (better)
        *best = *now;
}

/* Whether no later candidate can be better. */
static bool is_enough(const Trial *best, const Candidate *next, const PlanOptions *how)
{
    if (!how->budget || arena_of(best) > how->budget)
        return false;
    return how->smallest || next->least >= best->built.plan->cost * (1 - 1e-9);
}

/* What no plan costs less than, with one more candidate that may have some. */
static double lower_bound(double bound, const Trial *trial, const PlanOptions *how)
{
    const Search *search = &trial->built.search;
    if (!is_valid(trial) || (how->budget && trial->built.plan->floor > how->budget))
        return bound;
    double own = search->cost_bound > search->least_cost ? search->cost_bound : search->least_cost;
    return own < bound ? own : bound;
}

/* Any plan within the budget, or else the smallest, in equal parts of half the time that there is:
 * what is searched for longest may be what does not fit. */
static Trial try_any(Chooser *s)
{
    Trial best = {0};
    PlanOptions how = *s->options;
    how.smallest = true;
    how.seconds = s->options->seconds / 2 / (double)count_open(s);
    bool *seen = ARENA_ARRAY(s->arena, bool, 2 * s->candidate.count);
    for (Id i; (i = next_candidate(s, true)) != NONE && !is_stopped(s);) {
        Trial now = plan_candidate(s, i, &how);
        keep_better(&best, &now, s->options);
        seen[i] = s->candidate.at[i].tried = true;
        if (arena_of(&best) <= how.budget)
            break;
    }
    for (size_t i = 0; i < s->candidate.count; i++) /* all of it was but a first look */
        if (seen[i])
            s->candidate.at[i].tried = false;
    return best;
}

/* The best of those that are open, as far as they can be of use. */
static Trial try_all(Chooser *s)
{
    Trial best = {0};
    double bound = INFINITY;
    bool cut = false;
    const PlanOptions *o = s->options;
    for (Id i; (i = next_candidate(s, false)) != NONE;) {
        if (is_enough(&best, &s->candidate.at[i], o))
            break;
        if (is_valid(&best) && is_stopped(s)) {
            cut = true;
            break;
        }
        if (!s->candidate.at[i].built) {
            lower_candidate(s, i);
            continue;
        }
        PlanOptions how = *o;
        how.seconds = seconds_left(s);
        if (o->budget || o->smallest)
            how.most = o->budget ? o->budget : is_valid(&best) ? arena_of(&best) : 0;
        Trial now = plan_candidate(s, i, &how);
        bound = lower_bound(bound, &now, o);
        if (is_valid(&now)) /* with what hints ask for */
            s->candidate.at[i].least = now.built.search.least_cost;
        if (now.built.search.hopeless && o->budget) { /* its graph is kept: see try_hopeless */
            s->candidate.at[i].tried = true;
            drop_trial(&now);
            continue;
        }
        close_candidate(&s->candidate.at[i]);
        if (now.built.search.hopeless)
            drop_trial(&now);
        else
            keep_better(&best, &now, o);
    }
    if (is_valid(&best) && bound < best.built.search.cost_bound)
        best.built.search.cost_bound = bound;
    best.built.search.cut |= cut;
    return best;
}

/* Nothing is within the budget: what cannot be is searched too, where it could be the smallest. */
static void try_hopeless(Chooser *s, Trial *best)
{
    for (Id i = 0; i < s->candidate.count; i++) {
        Candidate *c = &s->candidate.at[i];
        if (!c->hopeless)
            continue;
        if (is_valid(best) && is_stopped(s)) {
            best->built.search.cut = true;
            return;
        }
        PlanOptions how = *s->options;
        how.seconds = seconds_left(s);
        how.most = is_valid(best) ? arena_of(best) : 0;
        Trial now = plan_candidate(s, i, &how);
        close_candidate(c);
        if (now.built.search.hopeless)
            drop_trial(&now);
        else
            keep_better(best, &now, s->options);
    }
}

static Trial try_best(Chooser *s)
{
    Trial any = {0};
    const PlanOptions *o = s->options;
    if (o->seconds > 0 && o->budget && count_open(s) > 1)
        any = try_any(s);
    Trial best = try_all(s);
    if (o->budget && arena_of(&best) > o->budget)
        try_hopeless(s, &best);
    if (!is_valid(&any) || !best.built.search.cut || !is_better(&any, &best, o)) {
        drop_trial(&any);
        return best;
    }
    drop_trial(&best);
    any.built.search.cut = true;
    any.built.search.cost_bound = any.built.search.least_cost; /* of all of them no more is known */
    for (size_t i = 0; i < s->candidate.count; i++)
        if (!s->candidate.at[i].gone && s->candidate.at[i].least < any.built.search.cost_bound)
            any.built.search.cost_bound = s->candidate.at[i].least;
    return any;
}

/* ---- Why ------------------------------------------------------------------------------------ */

typedef bool Other(Choice c, Choice best);

/* What the candidates come to that are otherwise in one respect. */
static const char *otherwise(Chooser *s, Arena *arena, const Built *best, Other *other)
{
    const Candidate *cheapest = NULL;
    bool untried = false, refused = false;
    for (size_t i = 0; i < s->candidate.count; i++) {
        const Candidate *c = &s->candidate.at[i];
        if (c->gone || !other(c->choice, best->choice))
            continue;
        untried |= !c->tried;
        refused |= c->tried && !c->fits;
        if (c->fits && (!cheapest || c->cost < cheapest->cost))
            cheapest = c;
    }
    if (cheapest)
        return arena_printf(arena, "would take %.2f%% more time",
                            100 * (cheapest->cost / best->plan->cost - 1));
    if (untried && is_stopped(s))
        return "was not tried before the search was cut";
    if (untried && refused) /* some of them with other choices beside */
        return "would not fit, or take more time";
    return untried ? "would take more time" : "would not fit";
}

static bool is_stored(Choice c, Choice best)
{
    return best.chunked_loss && !c.chunked_loss;
}

static bool is_chunked(Choice c, Choice best)
{
    return !best.chunked_loss && c.chunked_loss;
}

static bool has_fewer(Choice c, Choice best)
{
    return c.micro < best.micro;
}

static bool has_more(Choice c, Choice best)
{
    return c.micro > best.micro;
}

static bool has_fused(Choice c, Choice best)
{
    return !best.epilogues && c.epilogues;
}

static bool has_apart(Choice c, Choice best)
{
    return best.epilogues && !c.epilogues;
}

static bool any_other(const Chooser *s, const Built *best, Other *other)
{
    for (size_t i = 0; i < s->candidate.count; i++)
        if (!s->candidate.at[i].gone && other(s->candidate.at[i].choice, best->choice))
            return true;
    return false;
}

/* The first of two statements whose alternatives exist, with what they come to. */
static const char *state(Chooser *s, Arena *arena, const Built *best, Other *one,
                         const char *if_one, Other *two, const char *if_two)
{
    if (any_other(s, best, one))
        return arena_printf(arena, "%s %s", if_one, otherwise(s, arena, best, one));
    if (any_other(s, best, two))
        return arena_printf(arena, "%s %s", if_two, otherwise(s, arena, best, two));
    return NULL;
}

static void explain(Chooser *s, Built *best)
{
    Arena *arena = best->arena;
    best->why.chunked_loss =
        state(s, arena, best, is_stored, "logits are never stored: storing them", is_chunked,
              "logits are stored: chunks");
    best->why.micro = state(s, arena, best, has_fewer, "fewer", has_more, "more");
    best->why.epilogues =
        state(s, arena, best, has_fused, "elementwise ops run on their own: inside products they",
              has_apart, "elementwise ops run inside products: on their own they");
}

/* ---- The doors ------------------------------------------------------------------------------ */

static Chooser begin(const Model *model, const Target *target, const PlanOptions *options,
                     Diag *diag)
{
    Chooser s = {.model = model,
                 .target = target,
                 .options = options,
                 .diag = diag,
                 .arena = arena_new(),
                 .begin = clock_seconds()};
    add(&s, choice_asked(target, options));
    lower_candidate(&s, 0);
    return s;
}

static void end(Chooser *s)
{
    for (size_t i = 0; i < s->candidate.count; i++)
        release(s->candidate.at[i].lowered);
    arena_free(s->arena);
}

/* What extra time is counted from. */
static double find_least_cost(Chooser *s)
{
    if (s->least_cost > 0)
        return s->least_cost;
    Choice choice = {.epilogues = choice_asked(s->target, s->options).epilogues};
    Built plain = build(s->model, s->target, &choice, diag_new(s->arena, NULL, false));
    double cost = plain.graph ? plan_cost(plain.graph, plain.clusters, s->target) : 0;
    built_free(&plain);
    return cost;
}

Built build(const Model *model, const Target *target, const Choice *choice, Diag *diag)
{
    Built built = {.arena = arena_new(), .choice = *choice};
    built.graph = model_lower(model, choice, built.arena, diag);
    if (built.graph && !supports(built.graph, target))
        built.graph = NULL;
    if (built.graph)
        built.clusters = fuse(built.arena, built.graph, choice->epilogues && target->epilogues);
    return built;
}

void built_free(Built *built)
{
    if (built->arena)
        arena_free(built->arena);
    *built = (Built){0};
}

Built choose(const Model *model, const Target *target, const PlanOptions *options, Diag *diag)
{
    Built none = {0};
    Chooser s = begin(model, target, options, diag);
    if (s.candidate.at[0].gone) {
        end(&s);
        return none;
    }
    if (options->budget || options->smallest)
        list_others(&s);
    Trial best = try_best(&s);
    Built built = best.built;
    built.search.least_cost = find_least_cost(&s);
    if (s.candidate.count > 1)
        explain(&s, &built);
    arena_adopt(built.arena, best.lowered->arena); /* the other candidates of it are closed */
    best.lowered->users = UINT32_MAX;
    end(&s);
    return built;
}

static int by_budget(const void *a, const void *b)
{
    const ChoicePoint *x = a, *y = b;
    if (x->budget != y->budget)
        return x->budget < y->budget ? -1 : 1;
    return (x->cost > y->cost) - (x->cost < y->cost);
}

bool choose_points(const Model *model, const Target *target, const PlanOptions *options,
                   Arena *arena, Diag *diag, ChoicePoint **points, size_t *count, Search *search)
{
    ARRAY(ChoicePoint) all = {0};
    PlanOptions how = *options;
    how.budget = 0;
    how.smallest = true; /* all choices are open */
    Chooser s = begin(model, target, &how, diag);
    bool good = !s.candidate.at[0].gone;
    if (good)
        list_others(&s);
    for (Id i; good && (i = next_candidate(&s, true)) != NONE && !(all.count && is_stopped(&s));) {
        PlanPoint *point;
        Candidate *c = &s.candidate.at[i];
        PlanOptions now = *options;
        Arena *scratch = arena_new();
        now.budget = 0;
        now.seconds = seconds_left(&s);
        size_t found = plan_points(scratch, c->lowered->graph, c->clusters, target, &now, &point);
        for (size_t k = 0; k < found; k++)
            ARRAY_PUSH(arena, &all, (ChoicePoint){point[k].budget, point[k].cost, c->choice});
        arena_free(scratch);
        close_candidate(c);
    }
    *search = (Search){.cut = is_stopped(&s), .least_cost = good ? find_least_cost(&s) : 0};
    end(&s);
    if (all.count)
        qsort(all.at, all.count, sizeof *all.at, by_budget);
    *count = 0;
    *points = all.at;
    for (size_t i = 0; i < all.count; i++)
        if (!*count || all.at[i].cost < all.at[*count - 1].cost * (1 - 1e-9))
            all.at[(*count)++] = all.at[i];
    return good;
}
