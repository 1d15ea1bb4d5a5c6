/* From a model to a plan: chooses in how many micro-batches it runs, whether the loss of a product
 * is computed in chunks, and whether elementwise ops run inside products.
 *
 * The first two cost time and save memory, so both wait for a budget to ask for them: without one
 * the model is built as written. Epilogues cost least and mostly take the fewest bytes, but not
 * always: the operands of both have to be there at once.
 *
 * With a budget, candidates (choose_candidates.c) are tried by their least cost (choose_trials.c).
 * Every choice has plans that cost no more with a larger budget, so what is chosen costs no more
 * either. Micro-batches round otherwise, so unless the model or the user asked for them they are no
 * candidates until nothing else fits: then a smaller budget may cost less. The graph of a candidate
 * is the one that is planned and returned.
 */
#include "planner/choose.h"

#include "frontend/base/clock.h"

#include <stdarg.h>

Choice choice_asked(const Model *model, const Target *target, const PlanOptions *options)
{
    const uint8_t stated = (uint8_t)model_precision(model), asked = options->precision;
    return (Choice){.precision = asked ? (uint8_t)(asked - 1) : stated,
                    .ranks = options->ranks,
                    .as_ranks = options->as_ranks,
                    .all_at_once = target->link == LINK_STREAMED,
                    .shard = options->shard,
                    .prepared = options->no_prepared ? 0 : UINT64_MAX,
                    .micro = options->micro_auto && !options->micro ? 1 : options->micro,
                    .chunked_loss = options->chunked_loss == WHEN_ALWAYS,
                    .epilogues = target->epilogues && options->epilogues != WHEN_NEVER};
}

/* ---- For all parts of it -------------------------------------------------------------------- */

bool choose_stopped(const Chooser *s)
{
    const PlanOptions *o = s->options;
    return (o->cancel && *o->cancel) ||
           (s->seconds > 0 && clock_seconds() - s->begin >= s->seconds);
}

double choose_seconds(const Chooser *s)
{
    double left = s->seconds - (clock_seconds() - s->begin);
    return s->seconds <= 0 ? 0 : left > 0.01 ? left : 0.01;
}

void choose_say(const Chooser *s, const char *format, ...)
{
    if (!s->options->say)
        return;
    va_list arguments;
    va_start(arguments, format);
    s->options->say(arena_vprintf(s->arena, format, arguments));
    va_end(arguments);
}

Chooser choose_begin(const Model *model, const Target *target, const PlanOptions *options,
                     Diag *diag)
{
    Chooser s = {.model = model,
                 .target = target,
                 .options = options,
                 .diag = diag,
                 .arena = arena_new(),
                 .begin = clock_seconds(),
                 .seconds = options->seconds};
    candidates_begin(&s);
    return s;
}

void choose_end(Chooser *s)
{
    for (size_t i = 0; i < s->candidate.count; i++)
        lowered_release(s->candidate.at[i].lowered);
    arena_free(s->arena);
}

/* With each cluster once, and the data read as far ahead as there is use for. */
static double least_cost(const Graph *g, const Clusters *clusters, const Target *target)
{
    return plan_cost(g, clusters, target) +
           plan_wait(g, clusters, target, ring_wanted(g, clusters, target));
}

double choose_least_cost(Chooser *s)
{
    if (s->least_cost > 0)
        return s->least_cost;
    const Choice asked = choice_asked(s->model, s->target, s->options);
    Choice choice = {.epilogues = asked.epilogues,
                     .precision = asked.precision,
                     .ranks = asked.ranks,
                     .as_ranks = asked.as_ranks,
                     .all_at_once = asked.all_at_once,
                     .shard = asked.shard,
                     .prepared = asked.prepared};
    Built plain = build(s->model, s->target, &choice, diag_new(s->arena, NULL, false));
    double cost = plain.graph ? least_cost(plain.graph, plain.clusters, s->target) : 0;
    built_free(&plain);
    return cost;
}

/* ---- The doors ------------------------------------------------------------------------------ */

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

/* What is known of the plan among all that was tried. */
static Search sum_up(Chooser *s, const ChoiceTrial *best)
{
    const Search *own = &best->search;
    return (Search){.least_cost = choose_least_cost(s),
                    .cost_bound = s->bound < own->cost_bound ? s->bound : own->cost_bound,
                    .effort = own->effort,
                    .cut = own->cut || s->cut,
                    .hopeless = own->hopeless,
                    .broken_hint = own->broken_hint};
}

static uint64_t least_floor(const Chooser *s)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < s->candidate.count; i++)
        if (s->candidate.at[i].hopeless && s->candidate.at[i].floor < least)
            least = s->candidate.at[i].floor;
    return least;
}

Built choose(const Model *model, const Target *target, const PlanOptions *options, Diag *diag)
{
    PlanOptions own = *options;
    const bool by_size = options->smallest && !options->budget;
    own.no_prepared |= by_size; /* what is kept takes bytes */
    Chooser s = choose_begin(model, target, &own, diag);
    if (s.candidate.at[0].gone) {
        choose_end(&s);
        return (Built){0};
    }
    s.by_size = by_size;
    if (options->budget || options->smallest)
        candidates_list(&s);
    ChoiceTrial best = trials_best(&s);
    if (!best.plan) {
        Built none = {.search = {.hopeless = true, .broken_hint = NONE}, .floor = least_floor(&s)};
        choose_end(&s);
        return none;
    }
    Built built = {.arena = best.arena,
                   .graph = best.lowered->graph,
                   .clusters = best.clusters,
                   .plan = best.plan,
                   .choice = best.choice,
                   .search = sum_up(&s, &best),
                   .why = reasons_state(&s, &best),
                   .micro_open = s.micro_open,
                   .coupled = message_copy(best.arena, &s.coupled)};
    arena_adopt(built.arena, best.lowered->arena); /* the other candidates of it are closed */
    best.lowered->users = UINT32_MAX;
    choose_end(&s);
    return built;
}
