/* Plans of a model with other parameters or micro-batches, to compare. */
#include "frontend/command/attempt.h"
#include "frontend/command/watch.h"

#include <string.h>

PlanOptions plan_options(const Options *o)
{
    PlanOptions how = {.budget = o->budget ? o->budget - o->reserve : 0,
                       .no_recompute = o->no_recompute,
                       .smallest = o->min_budget,
                       .io_external = o->io_external,
                       .params_external = o->params_external,
                       .effort = o->effort};
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

/* For -v: each way to lower the model that was planned, and what came of it. */
static void say_outcome(const Subject *s, const char *name, int64_t value, const Outcome *outcome)
{
    Arena *arena = outcome->model.arena;
    const char *set = name ? arena_printf(arena, "%s = %lld, ", name, (long long)value) : "";
    watch_say(
        "planned  %smicro-batches %u, loss %s, epilogues %s: %s, %.4g s of work, effort %llu", set,
        outcome->plan->program[PROGRAM_MICRO].times, outcome->choice.sliced ? "chunked" : "whole",
        s->target.tails && !outcome->choice.loops ? "fused" : "apart",
        size_text(arena, outcome->arena), outcome->cost, (unsigned long long)outcome->plan->effort);
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
    say_outcome(s, name, value, &outcome);
    return outcome;
}

void outcome_drop(Outcome *outcome)
{
    lowered_free(&outcome->model);
    outcome->plan = NULL;
}
