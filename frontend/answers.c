/* What the command answers instead of a program: --max, --pareto, and why a model does not fit. */
#include "frontend/attempt.h"
#include "frontend/watch.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST = 5 };

/* ---- --max ---------------------------------------------------------------------------------- */

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
    int64_t value = largest_value(s, o->max, true);
    watch_end();
    if (value == 0) {
        diag_error(s->diag, (Place){0}, "--max %s: %s does not fit with %s = 1 either", o->max,
                   s->graph->name, o->max);
        return 1;
    }
    printf("%lld\n", (long long)value);
    return 0;
}

/* ---- --pareto ------------------------------------------------------------------------------- */

/* Budgets count what is reserved. */
static void print_point(const Subject *s, const PlanPoint *p, double least, bool first)
{
    const char *kind = s->options->emit;
    unsigned long long budget = (unsigned long long)(p->arena + s->options->reserve);
    double extra = least > 0 ? 100 * (p->cost / least - 1) : 0;
    if (kind && strcmp(kind, "csv") == 0)
        printf("%llu,%.4f,%.6g\n", budget, extra, p->cost);
    else if (kind)
        printf("%s\n  {\"budget\": %llu, \"extra_percent\": %.4f, \"seconds\": %.6g}",
               first ? "" : ",", budget, extra, p->cost);
    else
        printf("%14llu  %12s  %9.2f%%  %12.6f\n", budget, size_text(s->arena, budget), extra,
               p->cost);
}

int answer_pareto(const Subject *s, Graph *g, const Clusters *clusters)
{
    PlanOptions how = plan_options(s->options);
    PlanPoint *point;
    how.budget = 0;
    size_t count = plan_points(g, clusters, &s->target, &how, &point);
    watch_end();
    double least = count ? point[count - 1].cost : 0;
    const char *kind = s->options->emit;
    if (!kind)
        printf("%14s  %12s  %10s  %12s\n", "budget", "", "extra work", "seconds");
    else
        fputs(strcmp(kind, "csv") == 0 ? "budget,extra_percent,seconds\n" : "[", stdout);
    for (size_t i = 0; i < count; i++)
        print_point(s, &point[i], least, i == 0);
    if (kind && strcmp(kind, "json") == 0)
        puts("\n]");
    return 0;
}

/* ---- Misfit --------------------------------------------------------------------------------- */

static const Node *node_at(const Plan *plan, uint32_t time)
{
    for (int p = 0; p < PROGRAMS; p++) {
        const Program *program = &plan->program[p];
        if (time < program->begin + program->count) {
            const Cluster *c = &plan->clusters->at[program->at[time - program->begin].cluster];
            return &plan->graph->node.at[plan->clusters->node[c->node + c->nodes - 1]];
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
            diag_note(s->diag, (Place){0}, "%10s  workspace", size_text(s->arena, b->bytes));
    }
}

static const char *extra_text(const Subject *s, double cost, double least)
{
    return arena_printf(s->arena, "%.1f%% more work", least > 0 ? 100 * (cost / least - 1) : 0);
}

/* Both are tried with little effort, but what is named was seen to fit. */
static void suggest_smaller(const Subject *s, const Plan *plan)
{
    const Graph *g = s->graph;
    PlanOptions how = plan_options(s->options);
    how.progress = NULL;
    if (g->train.present && !s->options->infer && plan->graph->train.times == 1) {
        Outcome micro = attempt_micro(s, &how);
        if (micro.valid && micro.times)
            diag_hint(s->diag, "--accumulate %u would fit, with %s", micro.times,
                      extra_text(s, micro.cost, plan->least_cost));
    }
    for (size_t i = 0; i < g->dimension.count; i++) {
        const Dimension *d = &g->dimension.at[i];
        int64_t value = d->batch && d->value > 1 ? largest_value(s, d->name, false) : 0;
        if (value == 0)
            continue;
        Outcome fits = attempt_auto(s, d->name, value, &how);
        diag_hint(s->diag, "-D %s=%lld would fit, with %s", d->name, (long long)value,
                  extra_text(s, fits.cost, fits.least_cost));
    }
}

void explain_misfit(const Subject *s, const Plan *plan)
{
    const Options *o = s->options;
    uint64_t budget = o->budget - o->reserve;
    const Node *node = node_at(plan, plan->peak_time);
    diag_error(s->diag, node ? node->place : (Place){0},
               "%s does not fit: the smallest plan needs %s, %s more than the budget",
               plan->graph->name, size_text(s->arena, plan->arena),
               size_text(s->arena, plan->arena - budget));
    if (node)
        diag_note(s->diag, (Place){0},
                  "most is live here, at step %u of %u, while %s runs: %s, of which %s lives all "
                  "the time; the largest:",
                  plan->peak_time, plan->end, node->op->name, size_text(s->arena, plan->peak),
                  size_text(s->arena, plan->persistent));
    list_largest(s, plan);
    diag_hint(s->diag, "--budget %llu would do", (unsigned long long)(plan->arena + o->reserve));
    suggest_smaller(s, plan);
}
