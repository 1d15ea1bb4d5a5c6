/* A batch that several ranks divide: sums over ranks, as ops.
 *
 * A rank is lowered for its part of the batch, as one of so many micro-batches: what proves that
 * micro-batches are independent proves it of ranks. Each sums up the gradients of its own
 * micro-batches, and these sums are added in rank order: ((g0 + g1) + g2) + ... That tree is the
 * same however the sum is computed, and with one micro-batch on each rank it is that of as many
 * micro-batches on one, where each adds to a gradient once.
 *
 * Two ops stand for a sum over ranks, reduce_begin and reduce_end, which have the engine's state as
 * a value that changes: so all of them are in one order. In between the gradient is a value that
 * nobody but reduce_end reads. Ends lag behind begins by some bytes, so that messages are under way
 * while the backward pass goes on. Linear in gradients.
 */
#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

enum {
    LAG = 32 << 20, /* bytes that are under way before somebody waits for the first of them */
    /* what runtime/c/ranks_state.h lays out, checked where it is compiled */
    STATE_HEAD = 4096,
    STATE_SUM = 24,    /* bytes for each tensor under way */
    STATE_PIECES = 12, /* and pieces, */
    PIECE_LEAST = 256, /* of so many numbers */
    PIECE_MOST = 1 << 16,
    /* where the parts of a piece arrive together: see runtime/cuda/ranks.cuh */
    SAID = 32,               /* bytes of what each rank says of a step */
    TOGETHER_MOST = 1 << 22, /* numbers that arrive at a time */
};

static bool is_summed(const Graph *g)
{
    return g->ranks.count > 0;
}

static bool is_trained(const Value *value)
{
    return value->kind == VALUE_PARAM && !value->frozen && value->dtype == F32;
}

/* ---- Before the programs -------------------------------------------------------------------- */

bool ranks_divide(const Graph *g, const Model *model, const Choice *choice, Model *part)
{
    const Dimension *batch = NULL;
    for (size_t i = 0; i < g->dimension.count && !batch; i++)
        if (g->dimension.at[i].batch)
            batch = &g->dimension.at[i];
    if (!batch) {
        diag_error(g->diag, g->train.span, "ranks need a batch dimension that they can divide");
        diag_hint(g->diag, "mark it in the model line: model %s(batch B = 32)", g->name);
        return false;
    }
    if (batch->value % choice->ranks != 0) {
        diag_error(g->diag, batch->span, "the batch %s = %lld is not a multiple of %u ranks",
                   batch->name, (long long)batch->value, choice->ranks);
        diag_hint(g->diag, "%s is the batch of all ranks together", batch->name);
        return false;
    }
    if (!choice->as_ranks)
        *part = model_define(g->arena, model, batch->name, batch->value / choice->ranks);
    return true;
}

/* Pieces whose parts arrive together: each rank owns one of so many numbers, and has room for what
 * all others say of it. */
static int64_t together_bytes(Graph *g, int64_t numbers)
{
    const int64_t ranks = g->ranks.count, others = ranks > 1 ? ranks - 1 : 1;
    const int64_t most = TOGETHER_MOST / others / 64 * 64, all = (numbers / ranks + 64) / 64 * 64;
    const int64_t piece = all < most ? all : most;
    g->ranks.piece = piece < PIECE_LEAST ? PIECE_LEAST : piece;
    return STATE_HEAD + (SAID * ranks + 255) / 256 * 256 + others * 4 * g->ranks.piece;
}

/* Room for all gradients and metrics, and pieces of a size that keeps every rank busy. */
static int64_t state_bytes(Graph *g, const Choice *choice)
{
    int64_t sums = 0, numbers = 0;
    for (size_t v = 0; v < g->value.count; v++) {
        sums += g->value.at[v].kind == VALUE_STATE; /* running statistics */
        if (is_trained(&g->value.at[v])) {
            sums++;
            numbers += value_count(&g->value.at[v]);
        }
    }
    for (size_t i = 0; i < g->output.count; i++)
        sums += g->output.at[i].metric;
    g->ranks.sums = (uint32_t)sums;
    if (choice->all_at_once)
        return together_bytes(g, numbers);
    int64_t piece = numbers / (4 * (int64_t)g->ranks.count) / 16 * 16;
    piece = piece < PIECE_LEAST ? PIECE_LEAST : piece > PIECE_MOST ? PIECE_MOST : piece;
    g->ranks.piece = piece;
    return STATE_HEAD + STATE_SUM * sums + STATE_PIECES * 4 * piece;
}

void ranks_begin(Graph *g, const Choice *choice, const Model *whole)
{
    g->ranks = (Ranks){.count = choice->ranks,
                       .here = choice->as_ranks,
                       .state = NONE,
                       .last = NONE,
                       .whole = whole};
    if (!is_summed(g) || g->ranks.here)
        return;
    const int64_t bytes = state_bytes(g, choice);
    g->ranks.state = graph_value(g, VALUE_GRADIENT, "ranks", U8, 1, &bytes, g->train.span);
}

/* ---- One sum -------------------------------------------------------------------------------- */

/* Whether micro-batches have summed it where it stays. */
static bool is_kept(const Graph *g, Use sum)
{
    return g->value.at[value_first(g, sum.value)].kind == VALUE_GRADIENT;
}

static Use reduce(Graph *g, const char *op, const char *name, Use sum)
{
    const Call from = {.span = g->value.at[sum.value].span, .phase = PHASE_UPDATE};
    Call c = call_begin(g, &from, op);
    c.name = arena_printf(g->arena, "%s.%s", name, op);
    call_use(g, &c, sum);
    call_use(g, &c, use_of(g->ranks.last));
    call_finish(g, &c);
    g->ranks.last = c.result.at[1].value;
    return c.result.at[0];
}

static Use reduce_begin(Graph *g, const char *name, Use sum)
{
    return reduce(g, is_kept(g, sum) ? "reduce_begin_kept" : "reduce_begin", name, sum);
}

static Use reduce_end(Graph *g, const char *name, Use sum)
{
    return reduce(g, is_kept(g, sum) ? "reduce_end_kept" : "reduce_end", name, sum);
}

/* One rank in place of all: the sum over them is kept beside that of each. */
static Use accumulate(Graph *g, const char *name, Use sum)
{
    const Value is = g->value.at[sum.value];
    const Call from = {.span = is.span, .phase = PHASE_UPDATE};
    const Use all =
        use_of(graph_value(g, VALUE_GRADIENT, name, (Dtype)is.dtype, is.rank, is.dim, is.span));
    Call c = call_begin(g, &from, "accumulate_ranks");
    c.name = arena_printf(g->arena, "%s.accumulate", name);
    call_use(g, &c, all);
    call_use(g, &c, sum);
    call_finish(g, &c);
    return c.result.at[0];
}

Use ranks_metric(Graph *g, const Output *metric, Use sum)
{
    if (!is_summed(g) || sum.value == NONE)
        return sum;
    if (!g->ranks.here)
        return reduce_end(g, metric->name, reduce_begin(g, metric->name, sum));
    return accumulate(g,
                      arena_printf(g->arena, "%s.%s", metric->name,
                                   g->program == PROGRAM_EVAL ? "of_eval.ranks" : "of_step.ranks"),
                      sum);
}

/* ---- Running statistics ---------------------------------------------------------------------- */

/* A table for a statistic, with a row for each micro-batch of all ranks. */
static Use stage_part(Graph *g, const Call *from, Id state, Use part)
{
    const Value is = g->value.at[state];
    const int64_t dim[] = {(int64_t)g->ranks.count * g->train.times, is.dim[0]};
    const Use table = use_of(graph_value(
        g, VALUE_GRADIENT, arena_printf(g->arena, "%s.ranks", is.name), F32, 2, dim, is.span));
    Call c = call_begin(g, from, "stage_part");
    c.phase = PHASE_UPDATE;
    c.name = arena_printf(g->arena, "%s.stage_part", is.name);
    call_use(g, &c, table);
    call_use(g, &c, part);
    call_finish(g, &c);
    return c.result.at[0];
}

/* In the place of the gradient of a state stands what it is moved by. */
bool ranks_stage(Graph *g, Use *gradient)
{
    for (size_t i = 0; i < g->staged.count && g->ranks.state != NONE; i++) {
        const Call *c = g->staged.at[i];
        for (int k = 0; k < 2; k++) {
            const Id state = c->use.at[k].value;
            if (gradient[state].value != NONE || g->loss_scale != NONE)
                return diag_error(
                    g->diag, c->span, "running statistics %s are not gathered from several ranks",
                    g->loss_scale != NONE ? "beside a loss scale" : "that several calls share");
            gradient[state] = stage_part(g, c, state, c->use.at[2 + k]);
        }
    }
    return true;
}

void ranks_unstage(Graph *g, Use *gradient)
{
    for (size_t i = 0; i < g->staged.count && g->ranks.state != NONE; i++)
        for (int k = 0; k < 2; k++) {
            Call *c = g->staged.at[i];
            Use *sum = &gradient[c->use.at[k].value];
            c->use.at[2 + k] = *sum;
            *sum = (Use){NONE, NONE};
        }
}

/* ---- Gradients ------------------------------------------------------------------------------ */

/* A gradient, and when it is complete: in the backward pass the last layer's is first. */
typedef struct {
    Id parameter, node;
} Arrival;

static int by_arrival(const void *a, const void *b)
{
    const Arrival *m = a, *n = b;
    if (m->node != n->node)
        return m->node < n->node ? -1 : 1;
    return (m->parameter > n->parameter) - (m->parameter < n->parameter);
}

static Arrival *list_arrivals(const Graph *g, const Use *gradient, size_t values, size_t *count)
{
    Arrival *list = ARENA_ARRAY(g->arena, Arrival, values + 1);
    *count = 0;
    for (Id v = 0; v < values; v++)
        if (gradient[v].value != NONE)
            list[(*count)++] = (Arrival){v, g->value.at[gradient[v].value].node};
    qsort(list, *count, sizeof *list, by_arrival);
    return list;
}

/* Whether gradients are summed and applied in one program. */
static bool is_one_program(const Graph *g)
{
    return program_times(g, PROGRAM_STEP) <= 1;
}

/* What is summed for a parameter, or for a running statistic. */
static uint64_t begun_bytes(const Graph *g, Id value)
{
    const bool rows = g->value.at[value].kind == VALUE_STATE;
    return value_bytes(&g->value.at[value]) * (rows ? g->ranks.count * g->train.times : 1);
}

/* Ends the sum that began as number i; its bytes. */
static uint64_t end_next(Graph *g, Use *gradient, size_t i)
{
    const Id parameter = g->ranks.begun.at[i];
    gradient[parameter] = reduce_end(g, g->value.at[parameter].name, gradient[parameter]);
    return begun_bytes(g, parameter);
}

void ranks_reduce(Graph *g, Use *gradient, size_t values)
{
    size_t count, ended = 0;
    uint64_t behind = 0; /* bytes that began behind the first that has not ended */
    if (!is_summed(g))
        return;
    const Arrival *list = list_arrivals(g, gradient, values, &count);
    for (size_t i = 0; i < count; i++) {
        Use *sum = &gradient[list[i].parameter];
        const char *name = g->value.at[list[i].parameter].name;
        if (g->ranks.here) {
            *sum = accumulate(g, arena_printf(g->arena, "%s.gradient.ranks", name), *sum);
            continue;
        }
        *sum = reduce_begin(g, name, *sum);
        ARRAY_PUSH(g->arena, &g->ranks.begun, list[i].parameter);
        behind += begun_bytes(g, list[i].parameter);
        for (; behind > LAG && ended < i && is_one_program(g); ended++)
            behind -= end_next(g, gradient, ended);
    }
    if (is_one_program(g))
        for (; ended < g->ranks.begun.count; ended++)
            end_next(g, gradient, ended);
}

/* Over micro-batches they end in the program that updates, each when its parameter comes. */
void ranks_end(Graph *g, Use *gradient)
{
    for (size_t i = 0; i < g->ranks.begun.count && !is_one_program(g); i++)
        end_next(g, gradient, i);
}
