/* What the command answers instead of a program: --max, --pareto, and why a model does not fit. */
#include "frontend/command/attempt.h"
#include "frontend/command/watch.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST = 5 };

/* ---- --max ---------------------------------------------------------------------------------- */

/* Why there is no value to print. */
static void explain_none(const Subject *s, const Largest *l)
{
    const char *name = s->options->max;
    if (!l->least)
        diag_error(s->diag, (Place){0},
                   "--max %s: no value of it makes a model that can be planned; without --max, "
                   "gplan says why",
                   name);
    else if (l->cut)
        diag_error(s->diag, (Place){0},
                   "--max %s: the search was cut before it found a value that fits", name);
    else
        diag_error(s->diag, (Place){0}, "--max %s: %s does not fit with %s = %lld either", name,
                   s->graph->name, name, (long long)l->least);
}

/* What lies above the value that was printed. */
static void explain_next(const Subject *s, const Largest *l)
{
    const char *name = s->options->max;
    if (l->cut)
        diag_note(s->diag, (Place){0}, "the search was cut: larger values of %s may fit", name);
    else if (!l->next)
        diag_note(s->diag, (Place){0}, "no larger value of %s near it makes a model", name);
    else
        diag_note(s->diag, (Place){0}, "%s = %lld, the next that makes a model, would need %s",
                  name, (long long)l->next, size_text(s->arena, l->need + s->options->reserve));
}

int answer_max(const Subject *s)
{
    const Options *o = s->options;
    const char *names[64];
    size_t count = 0;
    bool known = false;
    for (size_t i = 0; i < s->graph->dimension.count && count < 64; i++) {
        names[count++] = s->graph->dimension.at[i].name;
        known |= strcmp(names[count - 1], o->max) == 0;
    }
    if (!known) {
        diag_error(s->diag, (Place){0}, "--max %s: %s has no parameter %s", o->max, s->graph->name,
                   o->max);
        const char *meant = suggest(o->max, names, count);
        if (meant)
            diag_hint(s->diag, "did you mean %s?", meant);
        return 1;
    }
    Largest l = largest_value(s, o->max, true);
    watch_end();
    if (l.value == 0) {
        explain_none(s, &l);
        return 1;
    }
    printf("%lld\n", (long long)l.value);
    if (!o->quiet)
        explain_next(s, &l);
    return 0;
}

/* ---- --pareto ------------------------------------------------------------------------------- */

/* A plan as a point, and how the model was lowered for it. */
typedef struct {
    PlanPoint is;
    Choice choice;
} Point;

typedef struct {
    const Subject *s;
    ARRAY(Point) point;
    double least; /* of the plan that recomputes nothing, as the model stands */
} Pareto;

static int by_budget(const void *a, const void *b)
{
    const Point *x = a, *y = b;
    if (x->is.budget != y->is.budget)
        return x->is.budget < y->is.budget ? -1 : 1;
    return (x->is.cost > y->is.cost) - (x->is.cost < y->is.cost);
}

static void add_points(Pareto *p, const Candidate *c)
{
    Lowered model = lower_again(p->s, NULL, 0, c->choice);
    PlanOptions how = plan_options(p->s->options);
    PlanPoint *point;
    how.budget = 0;
    size_t count = plan_points(model.graph, model.clusters, &p->s->target, &how, &point);
    for (size_t i = 0; i < count; i++)
        ARRAY_PUSH(p->s->arena, &p->point, (Point){point[i], c->choice});
    lowered_free(&model);
}

/* Those that cost less than every smaller one. */
static void keep_front(Pareto *p)
{
    size_t count = 0;
    qsort(p->point.at, p->point.count, sizeof *p->point.at, by_budget);
    for (size_t i = 0; i < p->point.count; i++)
        if (!count || p->point.at[i].is.cost < p->point.at[count - 1].is.cost * (1 - 1e-9))
            p->point.at[count++] = p->point.at[i];
    p->point.count = count;
}

/* Budgets count what is reserved. */
static void print_point(const Pareto *pareto, const Point *p, bool first)
{
    const Subject *s = pareto->s;
    const char *kind = s->options->emit;
    unsigned long long budget = (unsigned long long)(p->is.budget + s->options->reserve);
    double extra = plan_extra(p->is.cost, pareto->least);
    uint32_t times = p->choice.times ? p->choice.times : 1;
    if (kind && strcmp(kind, "csv") == 0)
        printf("%llu,%.4f,%.6g,%u,%s\n", budget, extra, p->is.cost, times,
               p->choice.sliced ? "yes" : "no");
    else if (kind)
        printf("%s\n  {\"budget\": %llu, \"extra_percent\": %.4f, \"seconds\": %.6g, "
               "\"accumulate\": %u, \"slices\": %s}",
               first ? "" : ",", budget, extra, p->is.cost, times,
               p->choice.sliced ? "true" : "false");
    else
        printf("%14llu  %12s  %9.2f%%  %12.6f  %10u  %6s\n", budget, size_text(s->arena, budget),
               extra, p->is.cost, times, p->choice.sliced ? "yes" : "no");
}

int answer_pareto(const Subject *s)
{
    Pareto p = {.s = s, .least = least_cost(s, NULL, 0)};
    Candidates from = list_candidates(s, NULL, 0, 1);
    for (size_t i = 0; i < from.count && !(i && watch_stopped()); i++)
        add_points(&p, &from.at[i]);
    bool cut = watch_stopped();
    watch_end();
    keep_front(&p);
    const char *kind = s->options->emit;
    if (!kind)
        printf("%14s  %12s  %10s  %12s  %10s  %6s\n", "budget", "", "extra time", "seconds",
               "accumulate", "slices");
    else
        fputs(strcmp(kind, "csv") == 0 ? "budget,extra_percent,seconds,accumulate,slices\n" : "[",
              stdout);
    for (size_t i = 0; i < p.point.count; i++)
        print_point(&p, &p.point.at[i], i == 0);
    if (kind && strcmp(kind, "json") == 0)
        puts("\n]");
    if (cut && !s->options->quiet)
        diag_note(s->diag, (Place){0}, "the search was cut: smaller and cheaper plans may exist");
    return 0;
}

/* ---- Misfit --------------------------------------------------------------------------------- */

/* What runs then: the last node of a loop, or the product before it. */
static const Node *node_at(const Plan *plan, uint32_t time)
{
    for (int p = 0; p < PROGRAMS; p++) {
        const Program *program = &plan->program[p];
        if (time < program->begin + program->count) {
            const Cluster *c = &plan->clusters->at[program->at[time - program->begin].cluster];
            const Id last = cluster_has_tail(plan->graph, plan->clusters, c) ? 0 : c->nodes - 1;
            return &plan->graph->node.at[plan->clusters->node[c->node + last]];
        }
    }
    return NULL;
}

static bool is_live(const Buffer *b, Id id, uint32_t time)
{
    return b->root == id && !b->external && b->birth <= time && time < b->death;
}

/* The largest of those live at the peak that is smaller than, or stands after, the last one. */
static Id next_largest(const Plan *plan, Id last)
{
    Id best = NONE;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        bool after = last == NONE || b->bytes < plan->buffer[last].bytes ||
                     (i > last && b->bytes == plan->buffer[last].bytes);
        if (is_live(b, i, plan->peak_time) && after &&
            (best == NONE || b->bytes > plan->buffer[best].bytes))
            best = i;
    }
    return best;
}

static void list_largest(const Subject *s, const Plan *plan)
{
    Id id = NONE;
    for (int i = 0; i < LARGEST && (id = next_largest(plan, id)) != NONE; i++) {
        const Buffer *b = &plan->buffer[id];
        const Value *v = b->value == NONE ? NULL : &plan->graph->value.at[b->value];
        if (v)
            diag_note(s->diag, (Place){0}, "%10s  %s %s", size_text(s->arena, b->bytes), v->name,
                      shape_text(s->arena, (Dtype)v->dtype, v->rank, v->dim));
        else
            diag_note(s->diag, (Place){0}, "%10s  %s", size_text(s->arena, b->bytes),
                      b->kind == BUFFER_STATE ? "state of the run" : "workspace");
    }
}

static const char *extra_text(const Subject *s, double cost, double least)
{
    const bool step = s->graph->train.present && !s->options->infer;
    return arena_printf(s->arena, "%.2f%% extra time in a %s", plan_extra(cost, least),
                        step ? "training step" : "forward pass");
}

static const char *slices_text(const Subject *s, const Choice *choice)
{
    return choice->sliced && s->options->slices == WHEN_AUTO ? ", in slices" : "";
}

/* A number of micro-batches that would do, where that is the user's to say. */
static void suggest_micro(const Subject *s, const Plan *plan, const PlanOptions *how)
{
    if (!s->graph->train.present || s->options->infer || plan->graph->train.times != 1)
        return;
    Outcome micro = attempt_micro(s, how);
    if (micro.valid && micro.choice.times)
        diag_hint(s->diag, "--accumulate %u would fit%s, with %s", micro.choice.times,
                  slices_text(s, &micro.choice), extra_text(s, micro.cost, plan->least_cost));
    outcome_drop(&micro);
}

/* The largest batch is sought with little effort, but what is named was seen to fit. */
static void suggest_batch(const Subject *s, const Dimension *d, const PlanOptions *how)
{
    int64_t value = d->batch && d->value > 1 ? largest_value(s, d->name, false).value : 0;
    if (value == 0)
        return;
    Candidates from = list_candidates(s, d->name, value, 1);
    Outcome fits = attempt_best(s, d->name, value, &from, how);
    if (fits.valid && fits.arena <= how->budget)
        diag_hint(s->diag, "-D %s=%lld would fit%s, with %s", d->name, (long long)value,
                  slices_text(s, &fits.choice),
                  extra_text(s, fits.cost, least_cost(s, d->name, value)));
    outcome_drop(&fits);
}

void explain_misfit(const Subject *s, const Plan *plan)
{
    const Options *o = s->options;
    uint64_t budget = o->budget - o->reserve;
    const Node *node = node_at(plan, plan->peak_time);
    diag_error(s->diag, node ? node->place : (Place){0},
               plan->cut ? "%s does not fit so far: the search was cut when the smallest plan "
                           "needed %s, %s more than the budget"
                         : "%s does not fit: the smallest plan needs %s, %s more than the budget",
               plan->graph->name, size_text(s->arena, plan->arena),
               size_text(s->arena, plan->arena - budget));
    if (node)
        diag_note(s->diag, (Place){0},
                  "most is live here, at step %u of %u, while %s runs: %s, of which %s lives all "
                  "the time; the largest:",
                  plan->peak_time, plan->end, node->op->name, size_text(s->arena, plan->peak),
                  size_text(s->arena, plan->persistent));
    list_largest(s, plan);
    diag_hint(s->diag, "--budget %llu would do, with %s",
              (unsigned long long)(plan->arena + o->reserve),
              extra_text(s, plan->cost, plan->least_cost));
    if (plan->cut)
        diag_hint(s->diag, "a longer search may find a smaller plan: it had spent --effort %llu",
                  (unsigned long long)plan->effort);
    if (watch_stopped())
        return; /* what else would fit takes plans of its own */
    PlanOptions how = plan_options(o);
    how.progress = NULL;
    suggest_micro(s, plan, &how);
    for (size_t i = 0; i < s->graph->dimension.count; i++)
        suggest_batch(s, &s->graph->dimension.at[i], &how);
}
