/* Losses of products in chunks of rows: the logits of a language model are never stored whole.
 *
 * Requires: a lowered training program, before its gradients. Leaves: each cross_entropy_rows that
 * alone reads a product of a shared weight as one linear_cross_entropy in its place; the product
 * itself is then read by nobody and goes with the next simplify. Linear in nodes and operands.
 */
#include "frontend/frontend.h"

#include <string.h>

/* By value: how many operands of the program read it, and outputs where it computes them. */
static Id *count_readers(const Graph *g)
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

/* The weight [C, V] of a product that every row shares; value NONE where rows have their own. */
static Use shared_weight(Graph *g, Use use)
{
    View view = use_view(g, use), matrix = {.rank = 2, .offset = view.offset};
    for (int i = 0; i < view.rank - 2; i++)
        if (view.dim[i] > 1 && view.stride[i] != 0)
            return (Use){NONE, NONE};
    for (int i = 0; i < 2; i++) {
        matrix.dim[i] = view.dim[view.rank - 2 + i];
        matrix.stride[i] = view.stride[view.rank - 2 + i];
    }
    return use_make(g, use.value, matrix);
}

/* The rows of the product's left side, in the dims of the ids; value NONE where it has others. */
static Use rows_of(Graph *g, Use x, Use ids)
{
    View rows = use_view(g, x), dims = use_view(g, ids), out;
    dims.dim[dims.rank] = rows.dim[rows.rank - 1];
    if (!view_is_dense(&rows) || !view_reshape(&rows, dims.rank + 1, dims.dim, &out))
        return (Use){NONE, NONE};
    return use_make(g, x.value, out);
}

/* Replaces node `id`, whose logits come from `product`, by a call of the sliced op. */
static void replace(Graph *g, Id id, const Node *product)
{
    Node node = g->node.at[id];
    const OpRow *chunked_loss = op_find(node.op->chunked);
    Use w = shared_weight(g, node_use(g, product, 1));
    Use x = rows_of(g, node_use(g, product, 0), node_use(g, &node, 1));
    if (w.value == NONE || x.value == NONE)
        return;
    const Use operand[3] = {x, w, node_use(g, &node, 1)};
    Id use = (Id)g->use.count, attr = (Id)g->attr.count;
    for (int i = 0; i < 3; i++)
        ARRAY_PUSH(g->arena, &g->use, operand[i]);
    for (int i = 0; i < MAX_ARGS && chunked_loss->args[i].name; i++) {
        Attr setting = {0};
        if (chunked_loss->args[i].kind != ARG_TENSOR)
            setting = *node_attr(g, id, chunked_loss->args[i].name);
        ARRAY_PUSH(g->arena, &g->attr, setting);
    }
    node.op = chunked_loss;
    node.use = use;
    node.uses = 3;
    node.attr = attr;
    g->node.at[id] = node;
}

void chunk_losses(Graph *g)
{
    const Id *readers = count_readers(g);
    for (Id n = 0; n < g->node.count; n++) {
        if (!g->node.at[n].op->chunked || g->node.at[n].program != g->program)
            continue;
        Use logits = node_use(g, &g->node.at[n], 0);
        Id made = g->value.at[logits.value].node;
        if (made != NONE && g->node.at[made].op->flags & OP_PRODUCT && readers[logits.value] == 1 &&
            g->value.at[logits.value].rank >= 2)
            replace(g, n, &g->node.at[made]);
    }
}
