/* What the command answers instead of a program: --max, --min-budget, --pareto, a drawing. */
#include "frontend/command/kinds.h"
#include "frontend/command/question.h"
#include "frontend/command/watch.h"

#include <string.h>

/* Answers with micro-batches that the user did not ask for follow those without, on a separate
 * line: a value that takes them comes before the option that asks for them, so that both can be
 * pasted. */

uint32_t fewest_micro(const Graph *g)
{
    for (size_t i = 0; i < g->dimension.count; i++)
        for (int64_t k = 2; g->dimension.at[i].batch && k <= g->dimension.at[i].value; k++)
            if (g->dimension.at[i].value % k == 0)
                return k <= UINT32_MAX ? (uint32_t)k : 0;
    return 0;
}

/* ---- --max ---------------------------------------------------------------------------------- */

/* Why there is no value to print. */
static void explain_none(const Question *q, const char *model, const Largest *l)
{
    const char *name = q->options->max;
    if (!l->least)
        diag_error(q->diag, (Span){0},
                   "--max %s: no value gives a model that can be planned; run without --max to "
                   "see why",
                   name);
    else if (l->cut)
        diag_error(q->diag, (Span){0},
                   "--max %s: the search was cut short before it found a value that fits", name);
    else
        diag_error(q->diag, (Span){0}, "--max %s: %s does not fit even with %s = %lld", name, model,
                   name, (long long)l->least);
}

/* The values above the one that was printed. */
static void explain_next(const Question *q, const Largest *l, const char *how)
{
    const char *name = q->options->max;
    if (l->cut)
        diag_note(q->diag, (Span){0}, "the search was cut short: larger values of %s may fit",
                  name);
    else if (!l->next)
        diag_note(q->diag, (Span){0}, "no larger value of %s nearby gives a valid model", name);
    else
        diag_note(q->diag, (Span){0}, "%s = %lld, the next valid value, would need %s%s%s", name,
                  (long long)l->next, l->floor ? "at least " : "",
                  size_text(q->arena, l->need + q->options->reserve), how);
}

/* The value without micro-batches, 0 where none fits so; and the one with them. */
static int print_largest(const Question *q, const char *model, const Largest *l,
                         const Largest *with)
{
    bool more = with->value > l->value;
    if (!l->value && !more) {
        explain_none(q, model, l);
        return 1;
    }
    printf("%lld\n", (long long)l->value);
    if (!q->options->quiet && l->value)
        explain_next(q, l, "");
    if (more)
        printf("%lld --accumulate %u\n", (long long)with->value, with->micro);
    if (!q->options->quiet && more)
        explain_next(q, with, " in micro-batches");
    return 0;
}

/* Whether micro-batches are a last resort: neither asked for nor forbidden, and the samples are
 * independent, as far as the batch divides. */
static bool micro_is_open(const Question *q, const Graph *g)
{
    Choice choice = {.micro = fewest_micro(g)};
    if (!model_trains(q->model) || q->options->accumulate || q->options->accumulate_auto ||
        train_states(g))
        return false;
    Built built = {0};
    if (choice.micro)
        built = build(q->model, q->target, &choice, diag_new(q->arena, NULL, false));
    bool open = !choice.micro || built.graph;
    built_free(&built);
    return open;
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
    PlanOptions how = plan_options(o);
    bool open = micro_is_open(q, g);
    how.micro = open ? 1 : how.micro;
    Largest l = largest_value(q, &how, o->max, asked->value, true);
    how.micro = 0;
    int64_t from = l.value ? l.value : asked->value;
    Largest with = open ? largest_value(q, &how, o->max, from, true) : (Largest){0};
    if (with.micro == 1) /* it was found to be larger from there */
        l = with;
    watch_end();
    return print_largest(q, g->name, &l, &with);
}

/* ---- --min-budget --------------------------------------------------------------------------- */

int answer_min_budget(const Question *q, const Built *smallest)
{
    const Options *o = q->options;
    PlanOptions how = plan_options(o);
    bool cut = smallest->search.cut;
    printf("%llu\n", (unsigned long long)(smallest->plan->arena[SPACE_ARENA] + o->reserve));
    how.micro = smallest->micro_open ? fewest_micro(smallest->graph) : 0;
    if (how.micro && !watch_stopped()) {
        how.micro_auto = true;
        how.most = smallest->plan->arena[SPACE_ARENA] - 1;
        Built with = choose(q->model, q->target, &how, diag_new(q->arena, NULL, false));
        cut |= with.search.cut;
        if (with.plan && with.plan->arena[SPACE_ARENA] <= how.most)
            printf("%llu --accumulate %u\n",
                   (unsigned long long)(with.plan->arena[SPACE_ARENA] + o->reserve),
                   with.choice.micro);
        built_free(&with);
    }
    if (cut && !o->quiet)
        diag_note(q->diag, (Span){0}, "the search was cut short: a smaller budget may do");
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
               "\"accumulate\": %u, \"chunked_loss\": %s, \"precision\": \"%s\"}",
               first ? "" : ",", budget, extra, p->cost, times, chunked ? "true" : "false",
               dtype_name((Dtype)p->choice.precision));
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
        diag_note(q->diag, (Span){0},
                  "the search was cut short: smaller and cheaper plans may exist");
    return 0;
}

/* ---- A drawing ------------------------------------------------------------------------------ */

int answer_graph(const Question *q)
{
    PlanOptions how = plan_options(q->options);
    Choice choice = choice_asked(q->model, q->target, &how);
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
