/* Sums over ranks. Each op has the engine's state as its last operand and makes the next version of
 * it: so all of them have one order, the same on every rank, and none runs twice. */
#include "frontend/ops/rules.h"

static bool shape_reduce(Graph *g, Call *c)
{
    const View x = call_view(g, c, 0), state = call_view(g, c, 1);
    return call_output(g, c, F32, x.rank, x.dim) && call_output(g, c, U8, state.rank, state.dim);
}

static bool shape_part(Graph *g, Call *c)
{
    const View all = call_view(g, c, 0), part = call_view(g, c, 1);
    if (all.rank != 2 || part.rank != 1 || all.dim[1] != part.dim[0])
        return call_error(g, c, "a part is no row of the table");
    return call_output(g, c, F32, all.rank, all.dim);
}

#define REDUCE                                                                            \
    .kernel = "ranks", .args = {{.name = "x"}, {.name = "state"}}, .shape = shape_reduce, \
    .flags = OP_EFFECT | OP_HIDDEN | OP_FLAT | OP_STORED | OP_HOST, .batch = batch_never

const OpRow ops_ranks[] = {
    {.name = "reduce_begin",
     .help = "the sum of a tensor over ranks begins: its bytes are under way until reduce_end",
     .updates = {0, 2},
     .inplace = 1 << 0,
     .ranks = RANKS_PART | RANKS_WHOLE,
     REDUCE},
    {.name = "reduce_end",
     .help = "waits for the sum that began first of those that did not end",
     .updates = {0, 2},
     .inplace = 1 << 0,
     .ranks = RANKS_END,
     REDUCE},
    {.name = "reduce_begin_kept",
     .help = "the same of what micro-batches have summed, where it lies",
     .updates = {1, 2},
     .ranks = RANKS_PART | RANKS_WHOLE,
     REDUCE},
    {.name = "reduce_end_kept",
     .help = "likewise",
     .updates = {1, 2},
     .ranks = RANKS_END,
     REDUCE},
    {.name = "stage_part",
     .help = "what a micro-batch has to say, in its row of a table of all; other ranks add theirs",
     .kernel = "ranks",
     .args = {{.name = "all"}, {.name = "part"}},
     .shape = shape_part,
     .updates = {1},
     .flags = OP_EFFECT | OP_HIDDEN | OP_HOST,
     .batch = batch_never},
    {.name = "accumulate_ranks",
     .help = "the sum over ranks that one rank stands for, of what each has summed",
     .expr = "GP_PART(run) < run->micros ? b : run->micro + 1 < run->micros ? a : a + b",
     .args = {{.name = "sum"}, {.name = "g"}},
     .updates = {1},
     .flags = OP_ELEMENTWISE | OP_FLOAT | OP_EFFECT | OP_HIDDEN,
     .batch = batch_never},
    {0},
};
