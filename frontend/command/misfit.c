/* Why a model does not fit its budget: where the peak is, what is live there, and what would do. */
#include "frontend/command/question.h"
#include "frontend/command/watch.h"

/* Tensors that are listed; and what part of the peak is worth a word. */
enum { LARGEST = 5, LARGE_PART = 8 };

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
                      b->kind == BUFFER_STATE  ? "state of the run"
                      : b->kind == BUFFER_DATA ? "the data ring and what fills it"
                                               : "workspace");
    }
}

static const char *extra_text(const Question *q, double cost, double least)
{
    return arena_printf(q->arena, "%.2f%% extra time in a %s", plan_extra(cost, least),
                        model_trains(q->model) && model_plans(q->model, PROGRAM_STEP)
                            ? "training step"
                            : "forward pass");
}

/* Micro-batches that nobody asked for. */
static const char *micro_text(const Question *q, const Built *built)
{
    return built->micro_open && built->choice.micro > 1
               ? arena_printf(q->arena, ", in %u micro-batches", built->choice.micro)
               : "";
}

/* What was chosen of what was open. */
static const char *choice_text(const Question *q, const Built *built)
{
    bool chunked = built->choice.chunked_loss && q->options->chunked_loss == WHEN_AUTO;
    return arena_printf(q->arena, "%s%s", micro_text(q, built),
                        chunked ? ", with a chunked loss" : "");
}

static bool is_within(const Built *built, uint64_t budget)
{
    return built->plan && built->search.broken_hint == NONE &&
           built->plan->arena[SPACE_ARENA] <= budget;
}

/* For what is only worth a word where it fits. */
static PlanOptions hint_options(const Question *q)
{
    PlanOptions how = plan_options(q->options);
    how.progress = NULL;
    how.most = how.budget;
    return how;
}

/* A number of micro-batches that would do, where they were not tried. */
static void suggest_micro(const Question *q, const Built *built)
{
    PlanOptions how = hint_options(q);
    how.micro_auto = true;
    how.micro = fewest_micro(built->graph);
    if (!model_trains(q->model) || built->micro_open || built->graph->train.times != 1 ||
        !how.micro)
        return;
    Built micro = choose(q->model, q->target, &how, diag_new(q->arena, NULL, false));
    if (is_within(&micro, how.budget))
        diag_hint(q->diag, "--accumulate %u would fit%s, with %s", micro.choice.micro,
                  choice_text(q, &micro),
                  extra_text(q, micro.plan->cost, built->search.least_cost));
    built_free(&micro);
}

/* Why a step cannot run in micro-batches, and what to write so that it can. */
static void explain_coupled(const Question *q, const Message *coupled)
{
    if (!coupled->text)
        return;
    diag_note(q->diag, coupled->span, "%s", coupled->text);
    if (coupled->hint)
        diag_hint(q->diag, "%s", coupled->hint);
}

/* Bytes of a kind that are live at the peak; leaves the largest of them, or NONE. */
static uint64_t live_of(const Plan *plan, uint32_t time, BufferKind kind, Id *largest)
{
    uint64_t bytes = 0;
    *largest = NONE;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (b->kind != kind || !is_live(b, i, time))
            continue;
        bytes += b->bytes;
        if (*largest == NONE || b->bytes > plan->buffer[*largest].bytes)
            *largest = i;
    }
    return bytes;
}

/* One other way to plan, where it fits. */
static void suggest_other(const Question *q, const Model *model, const PlanOptions *how,
                          const char *option)
{
    Built other = choose(model, q->target, how, diag_new(q->arena, NULL, false));
    if (is_within(&other, how->budget))
        diag_hint(q->diag, "%s would fit%s, with %s", option, choice_text(q, &other),
                  extra_text(q, other.plan->cost, other.search.least_cost));
    built_free(&other);
}

/* Inputs and outputs, where all that does not fit is theirs. */
static void suggest_outputs(const Question *q, const Plan *plan, const LivePeak *peak)
{
    Id output, input;
    PlanOptions how = hint_options(q);
    how.smallest = true; /* whatever fits */
    uint64_t over = plan->arena[SPACE_ARENA] - how.budget;
    uint64_t out = live_of(plan, peak->time, BUFFER_OUTPUT, &output);
    uint64_t in = live_of(plan, peak->time, BUFFER_INPUT, &input);
    bool holds = out >= over && out >= peak->bytes / LARGE_PART;
    if (holds && plan->buffer[output].value != NONE)
        diag_note(q->diag, (Span){0},
                  "outputs hold %s of it, %s most: a model without it needs less",
                  size_text(q->arena, out), plan->graph->value.at[plan->buffer[output].value].name);
    if (holds && model_trains(q->model) && !q->model->programs) {
        Model model = *q->model;
        model.programs = 1u << PROGRAM_EVAL | 1u << PROGRAM_STEP;
        suggest_other(q, &model, &how, "--programs step,eval");
    }
    if (in + out >= over && in + out >= peak->bytes / LARGE_PART && !watch_stopped()) {
        how.io_external = true;
        suggest_other(q, q->model, &how, "--io external");
    }
}

/* What `keep` holds at the peak, where without it the rest might fit. */
static void note_kept(const Question *q, const Plan *plan, const LivePeak *peak)
{
    const Graph *g = plan->graph;
    uint64_t bytes = 0,
             over = plan->arena[SPACE_ARENA] - (q->options->budget - q->options->reserve);
    Id largest = NONE;
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (b->value == NONE || !(g->value.at[b->value].hint & HINT_KEEP) ||
            !is_live(b, i, peak->time))
            continue;
        bytes += b->bytes;
        if (largest == NONE || b->bytes > plan->buffer[largest].bytes)
            largest = i;
    }
    if (bytes >= over)
        diag_note(q->diag, (Span){0},
                  "`keep` holds %s of it, %s most: a model without that may fit",
                  size_text(q->arena, bytes), g->value.at[plan->buffer[largest].value].name);
}

/* Fewer threads, where they take enough off the workspace. */
static void suggest_threads(const Question *q, const Built *built)
{
    PlanOptions how = hint_options(q);
    uint64_t over = built->plan->arena[SPACE_ARENA] - how.budget;
    uint64_t most = plan_workspace(built->plan, q->target, q->target->threads);
    for (uint32_t threads = q->target->threads / 2; threads > 0; threads /= 2) {
        if (most - plan_workspace(built->plan, q->target, threads) < over)
            continue;
        Target target = *q->target;
        target.threads = threads;
        Built fewer = choose(q->model, &target, &how, diag_new(q->arena, NULL, false));
        bool fits = is_within(&fewer, how.budget);
        if (fits)
            diag_hint(q->diag, "--threads %u would fit%s, with %s", threads, choice_text(q, &fewer),
                      extra_text(q, fewer.plan->cost, fewer.search.least_cost));
        built_free(&fewer);
        if (fits || watch_stopped())
            return;
    }
}

/* 16 bits, where nobody said that they may be used. */
static void suggest_precision(const Question *q, const Built *built)
{
    PlanOptions how = hint_options(q);
    how.precision = 1 + BF16;
    how.smallest = true; /* whatever fits */
    if (built->choice.precision == F32 && !q->options->precision)
        suggest_other(q, q->model, &how, "--precision bf16");
}

/* The largest batch is sought with little effort, but what is named was seen to fit. */
static void suggest_batch(const Question *q, const Dimension *batch)
{
    PlanOptions how = hint_options(q);
    int64_t value =
        batch->value > 1 ? largest_value(q, &how, batch->name, batch->value, false).value : 0;
    if (value == 0)
        return;
    Model model = model_define(q->arena, q->model, batch->name, value);
    Built fits = choose(&model, q->target, &how, diag_new(q->arena, NULL, false));
    if (is_within(&fits, how.budget))
        diag_hint(q->diag, "-D %s=%lld would fit%s, with %s", batch->name, (long long)value,
                  choice_text(q, &fits), extra_text(q, fits.plan->cost, fits.search.least_cost));
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
                   ? "%s does not fit so far: the search was cut short when the smallest plan "
                     "needed %s%s, %s more than the budget"
                   : "%s does not fit: the smallest plan needs %s%s, %s more than the budget",
               plan->graph->name, size_text(q->arena, plan->arena[SPACE_ARENA]),
               micro_text(q, built), size_text(q->arena, plan->arena[SPACE_ARENA] - budget));
    if (node)
        diag_note(q->diag, (Span){0},
                  "the peak is here, at step %u of %u, while %s runs: %s are live, %s of it "
                  "persistent; the largest:",
                  live_peak->time, plan->end, node->op->name, size_text(q->arena, live_peak->bytes),
                  size_text(q->arena, plan->persistent));
    list_largest(q, plan, live_peak->time);
    note_kept(q, plan, live_peak);
    explain_coupled(q, &built->coupled);
    diag_hint(q->diag, "--budget %s would fit%s, with %s",
              size_enough(q->arena, plan->arena[SPACE_ARENA] + o->reserve), micro_text(q, built),
              extra_text(q, plan->cost, built->search.least_cost));
    if (built->search.cut)
        diag_hint(q->diag, "a longer search may find a smaller plan: it had spent --effort %llu",
                  (unsigned long long)built->search.effort);
    if (!watch_stopped())
        suggest_outputs(q, plan, live_peak);
    if (!watch_stopped())
        suggest_threads(q, built);
    if (!watch_stopped())
        suggest_precision(q, built);
    for (size_t i = 0; i < plan->graph->dimension.count && !watch_stopped(); i++) {
        const Dimension *d = &plan->graph->dimension.at[i];
        if (d->batch) { /* what else would fit takes plans of its own */
            suggest_micro(q, built);
            suggest_batch(q, d);
        }
    }
}
