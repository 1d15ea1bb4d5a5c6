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

bool accumulate_is_auto(const Options *o, const Graph *g)
{
    if (!g->train.present || o->infer || o->accumulate)
        return false;
    for (size_t i = 0; i < g->train.setting.count && !o->accumulate_auto; i++)
        if (strcmp(g->train.setting.at[i].name, "accumulate") == 0)
            return g->train.setting.at[i].value.is_word;
    return o->accumulate_auto;
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

static Graph *lower_again(const Subject *s, Arena *arena, Diag *diag, const char *name,
                          int64_t value, uint32_t times)
{
    const Options *o = s->options;
    size_t defines = 0;
    Define *define = define_also(arena, o, name, value, &defines);
    Graph *g = lower(arena, diag, s->source, s->ast, define, defines);
    if (g)
        g->sliced = o->sliced;
    if (!g || (g->train.present && !o->infer && !train_add(g, s->ast, define, defines, times)))
        return NULL;
    simplify(g);
    return g;
}

Outcome attempt(const Subject *s, const char *name, int64_t value, uint32_t times,
                const PlanOptions *how)
{
    Outcome outcome = {.valid = false};
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        return outcome;
    Arena *arena = arena_new();
    Graph *g = lower_again(s, arena, diag_new(arena, nowhere, false), name, value, times);
    if (g) {
        const Plan *plan = plan_make(g, fuse(g), &s->target, how);
        outcome = (Outcome){.valid = plan->broken_hint == NONE,
                            .arena = plan->arena,
                            .cost = plan->cost,
                            .least_cost = plan->least_cost,
                            .times = times};
    }
    arena_free(arena);
    fclose(nowhere);
    return outcome;
}

/* ---- Micro-batches -------------------------------------------------------------------------- */

static int64_t batch_of(const Subject *s, const char *name, int64_t value)
{
    for (size_t i = 0; i < s->graph->dimension.count; i++) {
        const Dimension *d = &s->graph->dimension.at[i];
        if (d->batch)
            return name && strcmp(d->name, name) == 0 ? value : d->value;
    }
    return 1;
}

static bool is_better(const Outcome *now, const Outcome *best, const PlanOptions *how)
{
    uint64_t budget = how->budget ? how->budget : UINT64_MAX;
    if (!best->valid)
        return now->valid;
    if (!now->valid)
        return false;
    bool fits = now->arena <= budget, fitted = best->arena <= budget;
    if (fits != fitted)
        return fits;
    return how->budget && fits ? now->cost < best->cost : now->arena < best->arena;
}

/* Divisors of the batch from `first` on, each at least twice the one before it. More of them only
 * cost more once one fits and recomputes nothing. */
static Outcome choose_times(const Subject *s, const char *name, int64_t value, uint32_t first,
                            const PlanOptions *how)
{
    Outcome best = {.valid = false};
    int64_t batch = batch_of(s, name, value);
    for (int64_t times = first, last = 0; times <= batch && times <= UINT32_MAX; times++) {
        if (batch % times || times < 2 * last || watch_stopped())
            continue;
        last = times;
        Outcome now = attempt(s, name, value, (uint32_t)times, how);
        if (!now.valid)
            break;
        bool fitted = best.valid && how->budget && best.arena <= how->budget;
        if (is_better(&now, &best, how))
            best = now;
        bool enough = how->budget && best.arena <= how->budget;
        if (enough && (how->smallest || best.cost <= best.least_cost ||
                       (fitted && now.least_cost >= best.cost)))
            break;
    }
    return best;
}

Outcome attempt_auto(const Subject *s, const char *name, int64_t value, const PlanOptions *how)
{
    if (accumulate_is_auto(s->options, s->graph))
        return choose_times(s, name, value, 1, how);
    return attempt(s, name, value, s->options->accumulate, how);
}

Outcome attempt_micro(const Subject *s, const PlanOptions *how)
{
    Outcome best = choose_times(s, NULL, 0, 2, how);
    if (!best.valid || best.arena > how->budget)
        best.times = 0;
    return best;
}

/* ---- The largest value ---------------------------------------------------------------------- */

typedef struct {
    const Subject *s;
    const char *name;
    PlanOptions how;
} Trial;

static bool value_fits(const Trial *t, int64_t value)
{
    Outcome o = attempt_auto(t->s, t->name, value, &t->how);
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
