/* Sums over ranks. Each op has the engine's state as its last operand and makes the next version of
 * it: so all of them have one order, the same on every rank, and none runs twice. */
#include "frontend/ops/rules.h"

static bool shape_reduce(Graph *g, Call *c)
{
    const View x = call_view(g, c, 0), state = call_view(g, c, 1);
    const Dtype dtype = call_dtype(g, c, 0);
    if (dtype != F32 && dtype != I32) /* bytes that are sent, and never added */
        return call_error(g, c, "takes f32, not %s", use_text(g, call_operand(c, 0)));
    return call_output(g, c, dtype, x.rank, x.dim) && call_output(g, c, U8, state.rank, state.dim);
}

/* Where the sum is apart from what it is of: a shard, or over micro-batches. */
static bool shape_sum(Graph *g, Call *c)
{
    const View x = call_view(g, c, 0), sum = call_view(g, c, 1), state = call_view(g, c, 2);
    return call_output(g, c, F32, x.rank, x.dim) && call_output(g, c, F32, sum.rank, sum.dim) &&
           call_output(g, c, U8, state.rank, state.dim);
}

static bool shape_sum_end(Graph *g, Call *c)
{
    const View sum = call_view(g, c, 1), state = call_view(g, c, 2);
    return call_output(g, c, F32, sum.rank, sum.dim) &&
           call_output(g, c, U8, state.rank, state.dim);
}

static bool shape_scatter(Graph *g, Call *c)
{
    const View x = call_view(g, c, 0), state = call_view(g, c, 1);
    const int64_t part = call_int(c, "part");
    if (part <= 0 || part >= view_count(&x))
        return call_error(g, c, "a shard of %lld numbers", (long long)part);
    return call_output(g, c, F32, x.rank, x.dim) && call_output(g, c, F32, 1, &part) &&
           call_output(g, c, U8, state.rank, state.dim);
}

static bool shape_part(Graph *g, Call *c)
{
    const View all = call_view(g, c, 0), part = call_view(g, c, 1);
    if (all.rank != 2 || part.rank != 1 || all.dim[1] != part.dim[0])
        return call_error(g, c, "a part is no row of the table");
    return call_output(g, c, F32, all.rank, all.dim);
}

#define COLLECTIVE(does)                                                               \
    .kernel = "ranks", .flags = OP_EFFECT | OP_HIDDEN | OP_FLAT | OP_STORED | OP_HOST, \
    .batch = batch_never, .ranks = does

/* How a sum begins. `part`: numbers that each rank owns, one shard after the other; 0: pieces are
 * owned in turn. Owners add the parts of all ranks, and send to all what they have. */
#define HOW(adds_, spreads_)                                      \
    {.name = "part", .kind = ARG_INT, .fallback = "0"},           \
        {.name = "adds", .kind = ARG_BOOL, .fallback = adds_},    \
    {                                                             \
        .name = "spreads", .kind = ARG_BOOL, .fallback = spreads_ \
    }

/* A row of each rank. */
static bool shape_gather(Graph *g, Call *c)
{
    const View part = call_view(g, c, 0), state = call_view(g, c, 1);
    int64_t dim[MAX_RANK] = {g->ranks.count};
    for (int i = 0; i < part.rank; i++)
        dim[i + 1] = part.dim[i];
    return call_output(g, c, F32, part.rank + 1, dim) &&
           call_output(g, c, U8, state.rank, state.dim);
}

const OpRow ops_ranks[] = {
    {.name = "reduce_begin",
     .help = "the sum of a tensor over ranks begins: its bytes are under way until reduce_end",
     .args = {{.name = "x"}, {.name = "state"}, HOW("true", "true")},
     .shape = shape_reduce,
     .updates = {0, 2},
     .inplace = 1 << 0,
     COLLECTIVE(RANKS_BEGINS)},
    {.name = "reduce_end",
     .help = "waits for the sum that began first of those that did not end",
     .args = {{.name = "x"}, {.name = "state"}},
     .shape = shape_reduce,
     .updates = {0, 2},
     .inplace = 1 << 0,
     COLLECTIVE(RANKS_END)},
    {.name = "scatter_begin",
     .help = "the same, but each rank gets the sum of its shard alone",
     .args = {{.name = "x"}, {.name = "state"}, HOW("true", "false")},
     .shape = shape_scatter,
     .updates = {0, 0, 2},
     .inplace = 1 << 0,
     COLLECTIVE(RANKS_PART)},
    {.name = "scatter_end",
     .help = "waits for it; what it is of is free then",
     .args = {{.name = "x"}, {.name = "shard"}, {.name = "state"}},
     .shape = shape_sum_end,
     .updates = {0, 3},
     .inplace = 1 << 1,
     COLLECTIVE(RANKS_END)},
    {.name = "sum_begin",
     .help = "the same over micro-batches too, in place: the first begins it, the last sends it",
     .args = {{.name = "x"}, {.name = "sum"}, {.name = "state"}, HOW("true", "true")},
     .shape = shape_sum,
     .updates = {0, 2, 3},
     .inplace = 1 << 0,
     COLLECTIVE(RANKS_BEGINS)},
    {.name = "sum_end",
     .help = "likewise",
     .args = {{.name = "x"}, {.name = "sum"}, {.name = "state"}},
     .shape = shape_sum_end,
     .updates = {2, 3},
     COLLECTIVE(RANKS_END)},
    {.name = "reduce_begin_kept",
     .help = "after the last micro-batch: the sum of what all of them have filled in",
     .args = {{.name = "x"}, {.name = "state"}, HOW("true", "true")},
     .shape = shape_reduce,
     .updates = {1, 2},
     COLLECTIVE(RANKS_BEGINS | RANKS_LAST)},
    {.name = "reduce_end_kept",
     .help = "likewise",
     .args = {{.name = "x"}, {.name = "state"}},
     .shape = shape_reduce,
     .updates = {1, 2},
     COLLECTIVE(RANKS_END | RANKS_LAST)},
    {.name = "gather_begin",
     .help = "each rank sends its shard of a parameter, in its place, to all others",
     .args = {{.name = "w"}, {.name = "state"}, HOW("false", "true")},
     .shape = shape_reduce,
     .updates = {1, 2},
     COLLECTIVE(RANKS_WHOLE)},
    {.name = "gather_end",
     .help = "waits for it",
     .args = {{.name = "w"}, {.name = "state"}},
     .shape = shape_reduce,
     .updates = {1, 2},
     COLLECTIVE(RANKS_END)},
    {.name = "gather_ranks",
     .help = "what each rank has, on all of them, in rank order; waits for the last",
     .kernel = "ranks",
     .args = {{.name = "part"}, {.name = "state"}},
     .shape = shape_gather,
     .updates = {0, 2},
     .flags = OP_EFFECT | OP_HIDDEN | OP_FLAT | OP_STORED | OP_HOST,
     .batch = batch_never,
     .ranks = RANKS_ROWS},
    {.name = "stage_part",
     .help = "what a micro-batch has to say, in its row of a table of all; other ranks add theirs",
     .kernel = "ranks",
     .args = {{.name = "all"}, {.name = "part"}},
     .shape = shape_part,
     .updates = {1},
     .flags = OP_EFFECT | OP_HIDDEN | OP_HOST,
     .batch = batch_never},
    {.name = "accumulate_ranks",
     .help = "the sum over ranks that one rank stands for, and over micro-batches",
     .expr = "GP_PART(run) ? a + b : b",
     .args = {{.name = "sum"}, {.name = "g"}},
     .updates = {1},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_EFFECT | OP_HIDDEN,
     .batch = batch_never},
    {0},
};
