/* Plans of a model with other parameters or micro-batches, to compare. */
#include "frontend/attempt.h"
#include "frontend/watch.h"

#include <string.h>

/* What a search with little effort gets of the one asked for, or of the default. */
enum { LITTLE_PART = 20, LITTLE = 50 };

PlanOptions plan_options(const Options *o)
{
    PlanOptions how = {.budget = o->budget ? o->budget - o->reserve : 0,
                       .no_recompute = o->no_recompute,
                       .smallest = o->min_budget,
                       .io_external = o->io_external,
                       .params_external = o->params_external,
                       .effort = o->effort,
                       .seconds = o->seconds};
    watch(&how);
    return how;
}

static Define *define_also(Arena *arena, const Options *o, const char *name, int64_t value,
                           size_t *count)
{
    Define *define = ARENA_ARRAY(arena, Define, o->define.count + 1);
    for (size_t i = 0; i < o->define.count; i++)
        if (!name || strcmp(o->define.at[i].name, name) != 0)
            define[(*count)++] = o->define.at[i];
    if (name)
        define[(*count)++] = (Define){.name = name, .value = value};
    return define;
}

bool choice_is(Choice a, Choice b)
{
    return a.times == b.times && a.sliced == b.sliced && a.loops == b.loops;
}

Lowered lower_again(const Subject *s, const char *name, int64_t value, Choice choice)
{
    const Options *o = s->options;
    Lowered model = {.arena = arena_new()};
    size_t defines = 0;
    Define *define = define_also(model.arena, o, name, value, &defines);
    Graph *g =
        lower(model.arena, diag_new(model.arena, NULL, false), s->source, s->ast, define, defines);
    if (g)
        g->sliced = choice.sliced;
    if (!g ||
        (g->train.present && !o->infer && !train_add(g, s->ast, define, defines, choice.times)))
        return model;
    simplify(g);
    model.graph = g;
    Target target = s->target;
    target.tails = target.tails && !choice.loops;
    model.clusters = fuse(g, &target);
    return model;
}

void lowered_free(Lowered *model)
{
    arena_free(model->arena);
    *model = (Lowered){0};
}

Outcome attempt(const Subject *s, const char *name, int64_t value, Choice choice,
                const PlanOptions *how)
{
    Outcome outcome = {.choice = choice, .model = lower_again(s, name, value, choice)};
    if (!outcome.model.graph)
        return outcome;
    outcome.plan = plan_make(outcome.model.graph, outcome.model.clusters, &s->target, how);
    outcome.valid = outcome.plan->broken_hint == NONE;
    outcome.arena = outcome.plan->arena;
    outcome.cost = outcome.plan->cost;
    return outcome;
}

void outcome_drop(Outcome *outcome)
{
    lowered_free(&outcome->model);
    outcome->plan = NULL;
}

/* ---- The largest value ---------------------------------------------------------------------- */

typedef struct {
    const Subject *s;
    const char *name;
    PlanOptions how;
} Trial;

static bool value_fits(const Trial *t, int64_t value)
{
    Candidates from = list_candidates(t->s, t->name, value, 1);
    Outcome o = attempt_best(t->s, t->name, value, &from, &t->how);
    outcome_drop(&o);
    return o.valid && o.arena <= t->how.budget;
}

/* low fits, or is 0; grows from there by steps that double, then bisects. */
static int64_t search_up(const Trial *t, int64_t low)
{
    int64_t high = low + 1, step = low > 8 ? low : 1;
    for (; !watch_stopped() && value_fits(t, high); step *= 2) {
        low = high;
        if (high > INT32_MAX)
            return low;
        high += step;
    }
    while (high - low > 1 && !watch_stopped()) {
        int64_t middle = low + (high - low) / 2;
        *(value_fits(t, middle) ? &low : &high) = middle;
    }
    return low;
}

static int64_t search_down(const Trial *t, int64_t high)
{
    int64_t low = 0;
    while (high - low > 1 && !watch_stopped()) {
        int64_t middle = low + (high - low) / 2;
        *(value_fits(t, middle) ? &low : &high) = middle;
    }
    return low;
}

static int64_t value_now(const Subject *s, const char *name)
{
    for (size_t i = 0; i < s->graph->dimension.count; i++)
        if (strcmp(s->graph->dimension.at[i].name, name) == 0)
            return s->graph->dimension.at[i].value;
    return 1;
}

int64_t largest_value(const Subject *s, const char *name, bool sure)
{
    Trial t = {s, name, plan_options(s->options)};
    uint64_t effort = t.how.effort;
    int64_t value = value_now(s, name);
    t.how.smallest = true;
    t.how.progress = NULL;
    t.how.effort = effort ? (effort + LITTLE_PART - 1) / LITTLE_PART : LITTLE;
    value = value_fits(&t, value) ? search_up(&t, value) : search_down(&t, value);
    t.how.effort = effort;
    while (value > 0 && !watch_stopped() && !value_fits(&t, value))
        value = value > 16 ? value - value / 16 : value - 1;
    if (!sure)
        return value;
    int64_t step = 1;
    while (value_fits(&t, value + step) && !watch_stopped()) {
        value += step;
        step *= 2;
    }
    for (; step > 1 && !watch_stopped(); step /= 2)
        if (value_fits(&t, value + step / 2))
            value += step / 2;
    return value;
}
