/* Norms as statistics and an elementwise op: what remains of a row with `apply` makes the
 * statistics, and an op that fuses with its neighbours makes its result of them.
 *
 * Requires: a training program with its gradients, which take the norm for one op. Leaves: each
 * result of such a row made by the ops that the row says, with the same bits; its node makes what
 * else others read. A relu or a sum after the norm then runs in the same loop, and a plan that
 * drops the result computes it again from statistics that take next to no bytes. Linear in nodes
 * and operands.
 */
#include "frontend/frontend.h"

static void read_instead(Graph *g, const Id *to, size_t values)
{
    for (size_t i = 0; i < g->use.count; i++)
        if (g->use.at[i].value < values)
            g->use.at[i].value = to[g->use.at[i].value];
    for (size_t i = 0; i < g->output.count; i++)
        if (g->output.at[i].use.value < values)
            g->output.at[i].use.value = to[g->output.at[i].use.value];
}

bool norms_split(Graph *g)
{
    const size_t nodes = g->node.count, values = g->value.count;
    const Id *readers = graph_readers(g);
    Id *added = ARENA_ARRAY(g->arena, Id, nodes + 1);
    Id *to = ARENA_ARRAY(g->arena, Id, values); /* by value: what is read in its place */
    for (Id v = 0; v < values; v++)
        to[v] = v;
    for (Id n = 0; n < nodes; n++) {
        const Node *node = &g->node.at[n];
        const Id value = node->value;
        added[n] = (Id)g->node.count;
        if (!node->op->apply || node->program != g->program || !readers[value])
            continue;
        const Call from = call_at(g, n);
        const Use made = node->op->apply(g, &from, n);
        if (made.value == NONE)
            return false;
        g->value.at[made.value].hint = g->value.at[value].hint;
        g->value.at[value].hint = 0;
        to[value] = made.value;
    }
    added[nodes] = (Id)g->node.count;
    read_instead(g, to, values);
    graph_weave(g, added, nodes);
    return true;
}
