/* Pools before rectifiers: maxpool(relu(x)) becomes relu(maxpool(x)) in a training step.
 *
 * Requires: a lowered training program, before its gradients. Leaves: each op that takes the first
 * of the largest in its windows (OP_LARGEST) before the op that it read (OP_RECTIFIES), where
 * nothing else reads that; what was before is unread and removed by the next simplify. Both
 * orders give the same bits, forward and backward: where a window's largest is positive it is the
 * same element, elsewhere the result is 0 and nothing flows back. After the pool the relu runs on
 * fewer elements, and its gradient needs these alone: the pool needs no more than the places that
 * it took. Linear in nodes and operands for each such pool.
 */
#include "frontend/frontend.h"

#include <string.h>

static const Use nothing = {NONE, NONE};

/* What the pool reads when it reads the operand of `relu` instead; nothing where the views of both
 * would have to be joined. */
static Use operand_through(const Graph *g, const Node *relu, Use read)
{
    Use x = node_use(g, relu, 0);
    if (x.view != NONE && read.view != NONE)
        return nothing;
    return (Use){x.value, x.view != NONE ? x.view : read.view};
}

static bool may_swap(const Graph *g, const Node *pool, const Id *readers)
{
    if (!(pool->op->flags & OP_LARGEST) || pool->program != g->program)
        return false;
    Use read = node_use(g, pool, 0);
    Id made = g->value.at[read.value].node;
    return made != NONE && g->node.at[made].op->flags & OP_RECTIFIES && readers[read.value] == 1 &&
           !g->value.at[read.value].hint && !g->value.at[pool->value].hint;
}

/* How many read each value, with room for those that are put in: one after each pool. */
static Id *readers_begin(Graph *g)
{
    const size_t most = g->value.count + g->node.count;
    Id *readers = ARENA_ARRAY(g->arena, Id, most);
    memcpy(readers, graph_readers(g), g->value.count * sizeof *readers);
    return readers;
}

void pools_first(Graph *g)
{
    Id *readers = readers_begin(g);
    const size_t count = g->node.count;
    for (Id n = 0, seen = 0; seen < count; n++, seen++) {
        const Node pool = g->node.at[n];
        if (!may_swap(g, &pool, readers))
            continue;
        const Id made = g->value.at[node_use(g, &pool, 0).value].node;
        const Node relu = g->node.at[made];
        Use x = operand_through(g, &relu, node_use(g, &pool, 0));
        Call at = call_at(g, made), c = call_begin(g, &at, relu.op->name);
        call_use(g, &c, use_of(pool.value));
        if (x.value == NONE || !call_finish(g, &c))
            continue;
        const Node *after = &g->node.at[g->node.count - 1];
        const Id use = after->use;
        readers[after->value] = readers[pool.value];
        readers[pool.value] = 1;
        graph_redirect(g, pool.value, after->value);
        g->use.at[use].value = pool.value;
        g->use.at[pool.use] = x;
        graph_move_added(g, n + 1, (Id)g->node.count - 1);
        n++; /* over the node that was put in */
    }
}
