/* What passes that change a program before its gradients have in common. */
#include "frontend/frontend.h"

#include <string.h>

Id *graph_readers(const Graph *g)
{
    Id *readers = ARENA_ARRAY(g->arena, Id, g->value.count);
    for (size_t i = 0; i < g->output.count && g->program != PROGRAM_STEP; i++)
        readers[g->output.at[i].use.value]++;
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++)
            if (node_use(g, &g->node.at[n], i).value != NONE)
                readers[node_use(g, &g->node.at[n], i).value]++;
    return readers;
}

void graph_move_last(Graph *g, Id at)
{
    Id last = (Id)g->node.count - 1;
    const Node moved = g->node.at[last];
    memmove(&g->node.at[at + 1], &g->node.at[at], (last - at) * sizeof *g->node.at);
    g->node.at[at] = moved;
    for (size_t v = 0; v < g->value.count; v++) {
        Id *node = &g->value.at[v].node;
        if (*node != NONE && *node >= at)
            *node = *node == last ? at : *node + 1;
    }
}

void graph_redirect(Graph *g, Id old, Id new)
{
    for (size_t i = 0; i < g->use.count; i++)
        if (g->use.at[i].value == old)
            g->use.at[i].value = new;
    for (size_t i = 0; i < g->output.count; i++)
        if (g->output.at[i].use.value == old)
            g->output.at[i].use.value = new;
}
