/* A batch that several ranks divide: sums over ranks, as ops.
 *
 * A rank is lowered for its part of the batch, as one of so many micro-batches: what proves that
 * micro-batches are independent proves it of ranks. The gradients of the first micro-batch of each
 * rank are added in rank order, and then those of the second to what there is:
 * (((g00 + g10) + g20) + g01) + g11 ..., where gij is of micro-batch j on rank i. That tree is the
 * same however the sum is computed, so nobody needs to hold what one rank has come to; and with one
 * micro-batch on each rank it is that of as many micro-batches on one, where each adds to a
 * gradient once.
 *
 * Two ops stand for a sum over ranks, reduce_begin and reduce_end, which have the engine's state as
 * a value that changes: so all of them are in one order. In between the gradient is a value that
 * nobody but reduce_end reads. Ends lag behind begins by some bytes, so that messages are under way
 * while the backward pass goes on. Over micro-batches, sum_begin and sum_end add to what their
 * owners keep. Linear in gradients.
 */
#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

enum {
    LAG = 32 << 20, /* bytes that are under way before somebody waits for the first of them */
    /* what runtime/c/ranks_state.h lays out, checked where it is compiled */
    STATE_HEAD = 4096,
    STATE_SUM = 56,    /* bytes for each tensor under way */
    STATE_PIECES = 12, /* and pieces, */
    PIECE_LEAST = 256, /* of so many numbers */
    PIECE_MOST = 1 << 16,
    GATHER_STATE = 64, /* bytes, for a pointer */
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

const char *shard_name(Shard shard)
{
    static const char *const name[SHARDS] = {"none", "state", "gradients"};
    return name[shard];
}

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
                       .shard = choice->as_ranks ? SHARD_NONE : choice->shard,
                       .state = NONE,
                       .last = NONE,
                       .gather = NONE,
                       .gathered = NONE,
                       .whole = whole};
    if (!is_summed(g) || g->ranks.here)
        return;
    const int64_t bytes = state_bytes(g, choice);
    g->ranks.state = graph_value(g, VALUE_GRADIENT, "ranks", U8, 1, &bytes, g->train.span);
}

/* ---- One sum -------------------------------------------------------------------------------- */

/* Whether micro-batches have filled it in where it stays. */
static bool is_kept(const Graph *g, Use sum)
{
    return g->value.at[value_first(g, sum.value)].kind == VALUE_GRADIENT;
}

static Call begin(Graph *g, const char *op, const char *name, Use sum)
{
    const Call from = {.span = g->value.at[sum.value].span, .phase = PHASE_UPDATE};
    Call c = call_begin(g, &from, op);
    c.name = arena_printf(g->arena, "%s.%s", name, op);
    return c;
}

/* The engine's state is the last operand and the last result. */
static Use finish(Graph *g, Call *c)
{
    call_use(g, c, use_of(g->ranks.last));
    call_finish(g, c);
    g->ranks.last = c->result.at[c->result.count - 1].value;
    return c->result.at[0];
}

static Use reduce(Graph *g, const char *op, const char *name, Use sum)
{
    Call c = begin(g, op, name, sum);
    call_use(g, &c, sum);
    return finish(g, &c);
}

static Use reduce_begin(Graph *g, const char *name, Use sum)
{
    return reduce(g, is_kept(g, sum) ? "reduce_begin_kept" : "reduce_begin", name, sum);
}

static Use reduce_end(Graph *g, const char *name, Use sum)
{
    return reduce(g, is_kept(g, sum) ? "reduce_end_kept" : "reduce_end", name, sum);
}

/* What is summed up in the place of `one`, from the first micro-batch on. */
static Use keep(Graph *g, const char *name, Use one)
{
    const Value *is = &g->value.at[one.value];
    const View part = use_view(g, one); /* maybe of what another gradient is in, too */
    return use_of(
        graph_value(g, VALUE_GRADIENT, name, (Dtype)is->dtype, part.rank, part.dim, is->span));
}

/* A sum that has begun: what is under way, and what it is added to, or becomes; NONE: the same. */
typedef struct {
    Use of, sum;
} Begun;

/* Over micro-batches, too. */
static Begun sum_begin(Graph *g, const char *name, Use one, Use all, int64_t part)
{
    Call c = begin(g, "sum_begin", name, one);
    call_set(&c, "part", (double)part);
    call_set(&c, "spreads", part == 0);
    call_use(g, &c, one);
    call_use(g, &c, all);
    one = finish(g, &c);
    return (Begun){one, c.result.at[1]};
}

static Use sum_end(Graph *g, const char *name, Begun begun)
{
    Call c = begin(g, "sum_end", name, begun.of);
    call_use(g, &c, begun.of);
    call_use(g, &c, begun.sum);
    return finish(g, &c);
}

/* One rank in place of all. */
static Use accumulate(Graph *g, const char *name, Use one)
{
    const Call from = {.span = g->value.at[one.value].span, .phase = PHASE_UPDATE};
    const Use all = keep(g, name, one);
    Call c = call_begin(g, &from, "accumulate_ranks");
    c.name = arena_printf(g->arena, "%s.accumulate", name);
    call_use(g, &c, all);
    call_use(g, &c, one);
    call_finish(g, &c);
    return c.result.at[0];
}

Use ranks_metric(Graph *g, const Output *metric, const char *name)
{
    if (g->ranks.here)
        return accumulate(g, name, metric->use);
    const Use all = keep(g, name, metric->use);
    return sum_end(g, metric->name, sum_begin(g, metric->name, metric->use, all, 0));
}

/* ---- Gathers -------------------------------------------------------------------------------- */

/* They come after each other, but not after sums that are under way: so they have a state of their
 * own, which knows where the engine is. */
Use ranks_rows(Graph *g, const Call *from, Use part)
{
    const int64_t bytes = GATHER_STATE;
    if (g->ranks.gather == NONE) {
        g->ranks.gather =
            graph_value(g, VALUE_GRADIENT, "ranks.gather", U8, 1, &bytes, g->train.span);
        g->ranks.gathered = g->ranks.gather;
    }
    Call c = call_begin(g, from, "gather_ranks");
    call_use(g, &c, part);
    call_use(g, &c, use_of(g->ranks.gathered));
    if (!call_finish(g, &c))
        return (Use){NONE, NONE};
    g->ranks.gathered = c.result.at[1].value;
    return c.result.at[0];
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
        for (int k = 0; k < 2 && !c->alike; k++) {
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
        for (int k = 0; k < 2 && !g->staged.at[i]->alike; k++) {
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

/* What is summed for a parameter, or for a running statistic. */
static uint64_t sum_bytes(const Graph *g, Id value)
{
    const bool rows = g->value.at[value].kind == VALUE_STATE;
    return value_bytes(&g->value.at[value]) * (rows ? g->ranks.count * g->train.times : 1);
}

/* Each rank's shard is in the place of what all of it would be, or apart from it. */
static Begun shard_begin(Graph *g, const char *name, Use one, int64_t part, bool apart)
{
    if (g->train.times > 1) {
        const Value is = g->value.at[one.value];
        const char *as = arena_printf(g->arena, "%s.gradient", name);
        return sum_begin(g, name, one,
                         apart ? use_of(graph_value(g, VALUE_GRADIENT, as, F32, 1, &part, is.span))
                               : keep(g, as, one),
                         part);
    }
    Call c = begin(g, apart ? "scatter_begin" : "reduce_begin", name, one);
    call_set(&c, "part", (double)part);
    call_set(&c, "spreads", false);
    call_use(g, &c, one);
    one = finish(g, &c);
    return (Begun){one, apart ? c.result.at[1] : (Use){NONE, NONE}};
}

/* Begins the sum of a gradient, or of what a running statistic is moved by. */
static Begun begin_next(Graph *g, Id of, Use one, uint8_t sharded)
{
    const char *name = g->value.at[of].name;
    if (sharded)
        return shard_begin(g, name, one, ranks_part(g, value_count(&g->value.at[of])),
                           sharded == SHARD_GRADIENTS);
    if (g->train.times <= 1 || is_kept(g, one))
        return (Begun){reduce_begin(g, name, one), {NONE, NONE}};
    return sum_begin(g, name, one, keep(g, arena_printf(g->arena, "%s.gradient", name), one), 0);
}

static Use end_next(Graph *g, Id of, Begun begun)
{
    const char *name = g->value.at[of].name;
    if (begun.sum.value == NONE)
        return reduce_end(g, name, begun.of);
    if (is_kept(g, begun.sum))
        return sum_end(g, name, begun);
    Call c = begin(g, "scatter_end", name, begun.of);
    call_use(g, &c, begun.of);
    call_use(g, &c, begun.sum);
    return finish(g, &c);
}

void ranks_reduce(Graph *g, Use *gradient, const uint8_t *sharded, size_t values)
{
    size_t count, ended = 0;
    uint64_t behind = 0; /* bytes that began after the first that has not ended */
    if (!is_summed(g))
        return;
    const Arrival *list = list_arrivals(g, gradient, values, &count);
    Begun *begun = ARENA_ARRAY(g->arena, Begun, count + 1);
    for (size_t i = 0; i < count; i++) {
        const Id of = list[i].parameter;
        if (g->ranks.here) {
            const char *name = arena_printf(g->arena, "%s.gradient", g->value.at[of].name);
            gradient[of] = accumulate(g, name, gradient[of]);
            continue;
        }
        begun[i] = begin_next(g, of, gradient[of], sharded[of]);
        ARRAY_PUSH(g->arena, &g->ranks.begun, of);
        behind += sum_bytes(g, of);
        for (; behind > LAG && ended < i; ended++) {
            gradient[list[ended].parameter] = end_next(g, list[ended].parameter, begun[ended]);
            behind -= sum_bytes(g, list[ended].parameter);
        }
    }
    for (; ended < count && !g->ranks.here; ended++)
        gradient[list[ended].parameter] = end_next(g, list[ended].parameter, begun[ended]);
}

/* ---- Shards ---------------------------------------------------------------------------------- */

/* Shards are cut where the norm of all gradients is (runtime/c/clip_factor.h) and where state of 8
 * bits has its blocks; what is shorter stays whole. */
enum { CUT = 4096 };

int64_t ranks_cut(int64_t count, int64_t ranks)
{
    const int64_t part = ((count + ranks - 1) / ranks + CUT - 1) / CUT * CUT;
    return part < count ? part : 0;
}

int64_t ranks_part(const Graph *g, int64_t count)
{
    return g->ranks.shard != SHARD_NONE ? ranks_cut(count, g->ranks.count) : 0;
}

void ranks_gather(Graph *g, const Use *updated, size_t count)
{
    Use *whole = ARENA_ARRAY(g->arena, Use, count + 1);
    for (size_t i = 0; i < count; i++) {
        const Value is = g->value.at[value_first(g, updated[i].value)];
        Call c = begin(g, "gather_begin", is.name, updated[i]);
        call_set(&c, "part", (double)ranks_part(g, value_count(&is)));
        call_use(g, &c, updated[i]);
        whole[i] = finish(g, &c);
    }
    for (size_t i = 0; i < count; i++) {
        const Value is = g->value.at[value_first(g, updated[i].value)];
        reduce(g, "gather_end", is.name, whole[i]);
    }
}

/* Squares of all shards, of each rank in a row, which all others get. */
Use ranks_squares(Graph *g, const Use *gradient, const uint8_t *sharded, size_t values)
{
    const Call from = {.span = g->train.span, .phase = PHASE_UPDATE, .name = "train"};
    Call c = call_begin(g, &from, "shard_squares");
    call_set(&c, "ranks", g->ranks.count);
    for (Id v = 0; v < values; v++)
        if (gradient[v].value != NONE && sharded[v]) {
            call_use(g, &c, use_of(v));
            call_use(g, &c, gradient[v]);
        }
    if (!c.use.count || !call_finish(g, &c))
        return (Use){NONE, NONE};
    Call spread = begin(g, "reduce_begin", "train.squares", c.result.at[0]);
    call_set(&spread, "part", (double)g->value.at[c.result.at[0].value].dim[1]);
    call_set(&spread, "adds", false);
    call_use(g, &spread, c.result.at[0]);
    return reduce_end(g, "train.squares", finish(g, &spread));
}

/* ---- What it takes --------------------------------------------------------------------------- */

static bool has_off(const Graph *g, Id node, const char *setting)
{
    return op_arg(g->node.at[node].op, setting) >= 0 && node_attr(g, node, setting)->number == 0;
}

uint8_t ranks_does(const Graph *g, Id node, bool last)
{
    const OpRow *op = g->node.at[node].op;
    uint8_t does = op->ranks;
    if (!last && does & RANKS_LAST)
        return 0;
    if (has_off(g, node, "adds"))
        does &= (uint8_t)~RANKS_PART;
    if (has_off(g, node, "spreads") || (!last && does & RANKS_PART))
        does &= (uint8_t)~RANKS_WHOLE; /* sums over micro-batches are sent with the last of them */
    return does;
}
