/* Which parts of outputs micro-batches write straight into their window of the whole batch.
 *
 * Requires: a simplified graph. Leaves: `whole` of each value that is nothing but one contiguous
 * window of the output that it is collected to. Others may read it there; who reads it for an
 * output of its own, or makes a new version of it, needs it elsewhere. Linear in operands.
 */
#include "frontend/frontend.h"

/* Micro-batches follow each other along the axis: the part is contiguous where nothing is outside
 * of it, with the layout of its view. */
static bool is_window(const Graph *g, Use part, int axis)
{
    View view = use_view(g, part);
    for (int i = 0; i < axis; i++)
        if (view.dim[i] != 1)
            return false;
    return view_is_dense(&view) && view.offset == 0 &&
           view_count(&view) == value_count(&g->value.at[part.value]);
}

/* By value: an output as it is, or an older version. */
static bool *find_taken(const Graph *g)
{
    bool *taken = ARENA_ARRAY(g->arena, bool, g->value.count);
    for (size_t i = 0; i < g->output.count; i++)
        taken[g->output.at[i].use.value] = true;
    for (size_t v = 0; v < g->value.count; v++)
        if (g->value.at[v].previous != NONE)
            taken[g->value.at[v].previous] = true;
    return taken;
}

void output_windows(Graph *g)
{
    const bool *taken = find_taken(g);
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        Id all = node_collects(g, node);
        Use part = all == NONE ? (Use){NONE, NONE} : node_use(g, node, 1);
        if (part.value == NONE || taken[part.value])
            continue;
        Value *value = &g->value.at[part.value];
        if (value->node != NONE && value->previous == NONE && value->whole == NONE &&
            is_window(g, part, (int)node_attr(g, n, "axis")->list[0]))
            value->whole = all;
    }
}
