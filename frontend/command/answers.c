/* What the command answers instead of a program: --max, --pareto, and why a model does not fit. */
#include "frontend/command/kinds.h"
#include "frontend/command/question.h"
#include "frontend/command/watch.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST = 5 };

/* ---- --max ---------------------------------------------------------------------------------- */

/* Why there is no value to print. */
static void explain_none(const Question *q, const char *model, const Largest *l)
{
    const char *name = q->options->max;
    if (!l->least)
        diag_error(q->diag, (Span){0},
                   "--max %s: no value of it makes a model that can be planned; without --max, "
                   "gplan says why",
                   name);
    else if (l->cut)
        diag_error(q->diag, (Span){0},
                   "--max %s: the search was cut before it found a value that fits", name);
    else
        diag_error(q->diag, (Span){0}, "--max %s: %s does not fit even with %s = %lld", name, model,
                   name, (long long)l->least);
}

/* What lies above the value that was printed. */
static void explain_next(const Question *q, const Largest *l)
{
    const char *name = q->options->max;
    if (l->cut)
        diag_note(q->diag, (Span){0}, "the search was cut: larger values of %s may fit", name);
    else if (!l->next)
        diag_note(q->diag, (Span){0}, "no larger value of %s near it makes a model", name);
    else
        diag_note(q->diag, (Span){0}, "%s = %lld, the next that makes a model, would need %s", name,
                  (long long)l->next, size_text(q->arena, l->need + q->options->reserve));
}

int answer_max(const Question *q)
{
    const Options *o = q->options;
    const char *names[64];
    size_t count = 0;
    const Dimension *asked = NULL;
    const Graph *g = lower(q->arena, q->diag, q->model); /* for its parameters */
    if (!g)
        return 1;
    for (size_t i = 0; i < g->dimension.count && count < 64; i++) {
        names[count++] = g->dimension.at[i].name;
        if (strcmp(names[count - 1], o->max) == 0)
            asked = &g->dimension.at[i];
    }
    if (!asked) {
        diag_error(q->diag, (Span){0}, "--max %s: %s has no parameter %s", o->max, g->name, o->max);
        const char *meant = suggest(o->max, names, count);
        if (meant)
            diag_hint(q->diag, "did you mean %s?", meant);
        return 1;
    }
    Largest l = largest_value(q, o->max, asked->value, true);
    watch_end();
    if (l.value == 0) {
        explain_none(q, g->name, &l);
        return 1;
    }
    printf("%lld\n", (long long)l.value);
    if (!o->quiet)
        explain_next(q, &l);
    return 0;
}

/* ---- --pareto ------------------------------------------------------------------------------- */

/* Budgets count what is reserved. */
static void print_point(const Question *q, const ChoicePoint *p, double least, bool first)
{
    const char *kind = q->options->emit;
    unsigned long long budget = (unsigned long long)(p->budget + q->options->reserve);
    double extra = plan_extra(p->cost, least);
    uint32_t times = p->choice.micro ? p->choice.micro : 1;
    bool chunked = p->choice.chunked_loss;
    if (kind && strcmp(kind, "csv") == 0)
        printf("%llu,%.4f,%.6g,%u,%s\n", budget, extra, p->cost, times, chunked ? "yes" : "no");
    else if (kind)
        printf("%s\n  {\"budget\": %llu, \"extra_percent\": %.4f, \"seconds\": %.6g, "
               "\"accumulate\": %u, \"chunked_loss\": %s}",
               first ? "" : ",", budget, extra, p->cost, times, chunked ? "true" : "false");
    else
        printf("%14llu  %12s  %9.2f%%  %12.6f  %10u  %6s\n", budget, size_text(q->arena, budget),
               extra, p->cost, times, chunked ? "yes" : "no");
}

/* For people: whether a point is far enough from the last one shown to tell them something. */
static bool differs(const ChoicePoint *point, const ChoicePoint *last, const ChoicePoint *first,
                    const ChoicePoint *end)
{
    enum { SHOWN = 12 };
    return !last || last->cost - point->cost >= (first->cost - end->cost) / SHOWN ||
           point->budget - last->budget >= (end->budget - first->budget) / SHOWN;
}

int answer_pareto(const Question *q)
{
    Search search;
    ChoicePoint *point;
    size_t count;
    PlanOptions how = plan_options(q->options);
    bool good =
        choose_points(q->model, q->target, &how, q->arena, q->diag, &point, &count, &search);
    watch_end();
    if (!good)
        return 1;
    const char *kind = q->options->emit;
    if (!kind)
        printf("%14s  %12s  %10s  %12s  %10s  %6s\n", "budget", "", "extra time", "seconds",
               "accumulate", "chunked");
    else
        fputs(strcmp(kind, "csv") == 0 ? "budget,extra_percent,seconds,accumulate,chunked_loss\n"
                                       : "[",
              stdout);
    const ChoicePoint *last = NULL;
    for (size_t i = 0; i < count; i++)
        if (kind || i + 1 == count || differs(&point[i], last, &point[0], &point[count - 1])) {
            print_point(q, &point[i], search.least_cost, i == 0);
            last = &point[i];
        }
    if (kind && strcmp(kind, "json") == 0)
        puts("\n]");
    if (search.cut && !q->options->quiet)
        diag_note(q->diag, (Span){0}, "the search was cut: smaller and cheaper plans may exist");
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
            const Id last = cluster_has_epilogue(plan->graph, plan->clusters, c) ? 0 : c->nodes - 1;
            return &plan->graph->node.at[plan->clusters->node[c->node + last]];
        }
    }
    return NULL;
}

static bool is_live(const Buffer *b, Id id, uint32_t time)
{
    return b->root == id && b->space == SPACE_ARENA && b->birth <= time && time < b->death;
}

/* The largest of those live at the peak that is smaller than, or stands after, the last one. */
static Id next_largest(const Plan *plan, uint32_t time, Id last)
{
    Id best = NONE;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        bool after = last == NONE || b->bytes < plan->buffer[last].bytes ||
                     (i > last && b->bytes == plan->buffer[last].bytes);
        if (is_live(b, i, time) && after && (best == NONE || b->bytes > plan->buffer[best].bytes))
            best = i;
    }
    return best;
}

static void list_largest(const Question *q, const Plan *plan, uint32_t time)
{
    Id id = NONE;
    for (int i = 0; i < LARGEST && (id = next_largest(plan, time, id)) != NONE; i++) {
        const Buffer *b = &plan->buffer[id];
        const Value *v = b->value == NONE ? NULL : &plan->graph->value.at[b->value];
        if (v)
            diag_note(q->diag, (Span){0}, "%10s  %s %s", size_text(q->arena, b->bytes), v->name,
                      shape_text(q->arena, (Dtype)v->dtype, v->rank, v->dim));
        else
            diag_note(q->diag, (Span){0}, "%10s  %s", size_text(q->arena, b->bytes),
                      b->kind == BUFFER_STATE ? "state of the run" : "workspace");
    }
}

static const char *extra_text(const Question *q, double cost, double least)
{
    return arena_printf(q->arena, "%.2f%% extra time in a %s", plan_extra(cost, least),
                        model_trains(q->model) ? "training step" : "forward pass");
}

static const char *chunked_text(const Question *q, const Choice *choice)
{
    return choice->chunked_loss && q->options->chunked_loss == WHEN_AUTO ? ", with a chunked loss"
                                                                         : "";
}

static bool is_within(const Built *built, uint64_t budget)
{
    return built->plan && built->search.broken_hint == NONE && built->plan->arena <= budget;
}

/* A number of micro-batches that would do, where that is the user's to say. */
static void suggest_micro(const Question *q, const Built *built, const Dimension *batch)
{
    if (!model_trains(q->model) || built->graph->train.times != 1)
        return;
    PlanOptions how = plan_options(q->options);
    how.progress = NULL;
    how.micro_auto = true;
    for (how.micro = 2; how.micro <= batch->value && batch->value % how.micro != 0;)
        how.micro++;
    if (how.micro > batch->value)
        return;
    Built micro = choose(q->model, q->target, &how, diag_new(q->arena, NULL, false));
    if (is_within(&micro, how.budget))
        diag_hint(q->diag, "--accumulate %u would fit%s, with %s", micro.choice.micro,
                  chunked_text(q, &micro.choice),
                  extra_text(q, micro.plan->cost, built->search.least_cost));
    built_free(&micro);
}

/* Fewer threads, where they take enough off the workspace. */
static void suggest_threads(const Question *q, const Built *built)
{
    PlanOptions how = plan_options(q->options);
    how.progress = NULL;
    uint64_t over = built->plan->arena - how.budget;
    uint64_t most = plan_workspace(built->plan, q->target, q->target->threads);
    for (uint32_t threads = q->target->threads / 2; threads > 0; threads /= 2) {
        if (most - plan_workspace(built->plan, q->target, threads) < over)
            continue;
        Target target = *q->target;
        target.threads = threads;
        Built fewer = choose(q->model, &target, &how, diag_new(q->arena, NULL, false));
        bool fits = is_within(&fewer, how.budget);
        if (fits)
            diag_hint(q->diag, "--threads %u would fit%s, with %s", threads,
                      chunked_text(q, &fewer.choice),
                      extra_text(q, fewer.plan->cost, fewer.search.least_cost));
        built_free(&fewer);
        if (fits || watch_stopped())
            return;
    }
}

/* The largest batch is sought with little effort, but what is named was seen to fit. */
static void suggest_batch(const Question *q, const Dimension *batch)
{
    int64_t value = batch->value > 1 ? largest_value(q, batch->name, batch->value, false).value : 0;
    if (value == 0)
        return;
    PlanOptions how = plan_options(q->options);
    how.progress = NULL;
    Model model = model_define(q->arena, q->model, batch->name, value);
    Built fits = choose(&model, q->target, &how, diag_new(q->arena, NULL, false));
    if (is_within(&fits, how.budget))
        diag_hint(q->diag, "-D %s=%lld would fit%s, with %s", batch->name, (long long)value,
                  chunked_text(q, &fits.choice),
                  extra_text(q, fits.plan->cost, fits.search.least_cost));
    built_free(&fits);
}

void explain_misfit(const Question *q, const Built *built, const LivePeak *live_peak)
{
    const Options *o = q->options;
    const Plan *plan = built->plan;
    uint64_t budget = o->budget - o->reserve;
    const Node *node = node_at(plan, live_peak->time);
    diag_error(q->diag, node ? node->span : (Span){0},
               built->search.cut
                   ? "%s does not fit so far: the search was cut when the smallest plan "
                     "needed %s, %s more than the budget"
                   : "%s does not fit: the smallest plan needs %s, %s more than the budget",
               plan->graph->name, size_text(q->arena, plan->arena),
               size_text(q->arena, plan->arena - budget));
    if (node)
        diag_note(q->diag, (Span){0},
                  "most is live here, at step %u of %u, while %s runs: %s, of which %s is "
                  "persistent; the "
                  "largest:",
                  live_peak->time, plan->end, node->op->name, size_text(q->arena, live_peak->bytes),
                  size_text(q->arena, plan->persistent));
    list_largest(q, plan, live_peak->time);
    diag_hint(q->diag, "--budget %s would do, with %s",
              size_enough(q->arena, plan->arena + o->reserve),
              extra_text(q, plan->cost, built->search.least_cost));
    if (built->search.cut)
        diag_hint(q->diag, "a longer search may find a smaller plan: it had spent --effort %llu",
                  (unsigned long long)built->search.effort);
    if (!watch_stopped())
        suggest_threads(q, built);
    for (size_t i = 0; i < plan->graph->dimension.count && !watch_stopped(); i++) {
        const Dimension *d = &plan->graph->dimension.at[i];
        if (d->batch) { /* what else would fit takes plans of its own */
            suggest_micro(q, built, d);
            suggest_batch(q, d);
        }
    }
}

/* ---- A drawing ------------------------------------------------------------------------------ */

int answer_graph(const Question *q)
{
    PlanOptions how = plan_options(q->options);
    Choice choice = choice_asked(q->target, &how);
    Built built = build(q->model, q->target, &choice, q->diag);
    int status = 1;
    if (built.graph) {
        Text text = emit_graph(built.graph, &(EmitOptions){.depth = q->options->depth});
        status =
            output_write(q->diag, &(OutFile){.path = q->options->output, .text = text}, 1) ? 0 : 1;
    }
    built_free(&built);
    return status;
}
