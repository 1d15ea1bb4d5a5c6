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
    for (size_t n = g->node.count; n-- > 0;) { /* what shows an output that a step does not leave */
        const Node *node = &g->node.at[n];
        if (node->program == g->program && node->op->flags & OP_CONVERTS &&
            readers[node->value] == 0)
            readers[node_use(g, node, 0).value]--;
    }
    return readers;
}

void graph_move_added(Graph *g, Id at, Id added)
{
    const Id count = (Id)g->node.count - added;
    Node *moved = ARENA_ARRAY(g->arena, Node, count + 1);
    memcpy(moved, &g->node.at[added], count * sizeof *moved);
    memmove(&g->node.at[at + count], &g->node.at[at], (added - at) * sizeof *moved);
    memcpy(&g->node.at[at], moved, count * sizeof *moved);
    for (size_t v = 0; v < g->value.count; v++) {
        Id *node = &g->value.at[v].node;
        if (*node != NONE && *node >= at)
            *node = *node >= added ? at + (*node - added) : *node + count;
    }
}

void graph_weave(Graph *g, const Id *added, size_t nodes)
{
    Node *woven = ARENA_ARRAY(g->arena, Node, g->node.count + 1);
    size_t count = 0;
    for (size_t n = 0; n < nodes; n++) {
        woven[count++] = g->node.at[n];
        memcpy(&woven[count], &g->node.at[added[n]], (added[n + 1] - added[n]) * sizeof *woven);
        count += added[n + 1] - added[n];
    }
    memcpy(g->node.at, woven, count * sizeof *woven);
    for (Id n = 0; n < count; n++)
        for (Id i = 0; i < woven[n].values; i++)
            g->value.at[node_value(&woven[n], i)].node = n;
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

/* A node after all that it reads, into `to`, from where the last one was put. */
static Id sort_node(const Graph *g, Id node, Id *at, Node *to, Id count)
{
    const Node *n = &g->node.at[node];
    if (at[node] != NONE)
        return count;
    at[node] = 0; /* no node reads itself */
    for (Id i = 0; i < n->uses; i++) {
        const Id value = node_use(g, n, i).value;
        if (value != NONE && g->value.at[value].node != NONE)
            count = sort_node(g, g->value.at[value].node, at, to, count);
    }
    at[node] = count;
    to[count] = *n;
    return count + 1;
}

void graph_sort(Graph *g)
{
    Id *at = ARENA_ARRAY(g->arena, Id, g->node.count + 1), count = 0;
    Node *to = ARENA_ARRAY(g->arena, Node, g->node.count + 1);
    memset(at, 0xff, g->node.count * sizeof *at);
    for (Id n = 0; n < g->node.count; n++)
        count = sort_node(g, n, at, to, count);
    memcpy(g->node.at, to, count * sizeof *to);
    for (size_t v = 0; v < g->value.count; v++)
        if (g->value.at[v].node != NONE)
            g->value.at[v].node = at[g->value.at[v].node];
}
