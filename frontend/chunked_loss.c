/* Losses of products in chunks of rows: the logits of a language model are never stored whole.
 *
 * Requires: a lowered training program, before its gradients. Leaves: each cross_entropy_rows that
 * reads a product of a shared weight, alone or beside the index of the largest in each row, as one
 * linear_cross_entropy; loss, index and product are then unread and removed by the next
 * simplify. Linear in nodes and operands for each such loss.
 */
#include "frontend/frontend.h"

#include <string.h>

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

/* Who reads the logits of a loss: it, and those that want the largest of each of its rows. */
typedef struct {
    Id loss;
    ARRAY(Id) best;
    Id first; /* of all of them */
} Readers;

/* Whether node `id` makes an index of each row of the loss. */
static bool is_best(const Graph *g, Id id, Id loss)
{
    const Node *node = &g->node.at[id], *of = &g->node.at[loss];
    if (!(node->op->flags & OP_BEST))
        return false;
    View x = use_view(g, node_use(g, node, 0)), rows = use_view(g, node_use(g, of, 0));
    const Value *made = &g->value.at[node->value], *losses = &g->value.at[of->value];
    size_t dims = rows.rank * sizeof *rows.dim;
    return x.rank == rows.rank && x.offset == rows.offset && memcmp(x.dim, rows.dim, dims) == 0 &&
           memcmp(x.stride, rows.stride, dims) == 0 && made->rank == losses->rank &&
           node_attr(g, id, "axes")->list[0] == (int64_t)1 << (rows.rank - 1);
}

/* False where somebody else reads them too. */
static bool find_readers(const Graph *g, Id loss, Id readers, Readers *found)
{
    Id logits = node_use(g, &g->node.at[loss], 0).value;
    *found = (Readers){.loss = loss, .first = loss};
    for (Id n = g->value.at[logits].node + 1; n < g->node.count && readers > 1; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++)
            if (n != loss && node_use(g, &g->node.at[n], i).value == logits) {
                if (!is_best(g, n, loss))
                    return false;
                ARRAY_PUSH(g->arena, &found->best, n);
                found->first = n < found->first ? n : found->first;
                readers--;
            }
    return readers == 1;
}

/* Puts a call of the chunked op, with the operands of the product, before the first reader. */
static void replace(Graph *g, const Readers *r, const Node *product)
{
    const Node node = g->node.at[r->loss];
    Use ids = node_use(g, &node, 1);
    Use w = shared_weight(g, node_use(g, product, 1));
    Use x = rows_of(g, node_use(g, product, 0), ids);
    Id made = g->value.at[ids.value].node;
    if (w.value == NONE || x.value == NONE || (made != NONE && made >= r->first))
        return;
    const Id added = (Id)g->node.count;
    Call at = call_at(g, r->loss);
    Call c = call_begin(g, &at, node.op->chunked);
    c.wide = g->value.at[product->value].dtype == F32;
    const Use operand[3] = {x, w, ids};
    for (int i = 0; i < 3; i++)
        call_use(g, &c, operand[i]);
    for (int i = 0; i < MAX_ARGS && c.op->args[i].name; i++)
        if (c.op->args[i].kind != ARG_TENSOR)
            c.attr[i] = *node_attr(g, r->loss, c.op->args[i].name);
    if (!call_finish(g, &c))
        return;
    graph_redirect(g, node.value, c.result.at[0].value);
    for (size_t i = 0; i < r->best.count; i++)
        graph_redirect(g, g->node.at[r->best.at[i]].value, c.result.at[2].value);
    graph_move_added(g, r->first, added);
}

void chunk_losses(Graph *g)
{
    const Id *readers = graph_readers(g);
    for (Id n = 0; n < g->node.count; n++) {
        if (!g->node.at[n].op->chunked || g->node.at[n].program != g->program)
            continue;
        Use logits = node_use(g, &g->node.at[n], 0);
        Id made = g->value.at[logits.value].node;
        Readers found;
        if (made != NONE && g->node.at[made].op->flags & OP_PRODUCT &&
            g->value.at[logits.value].rank >= 2 &&
            find_readers(g, n, readers[logits.value], &found)) {
            size_t count = g->node.count;
            replace(g, &found, &g->node.at[made]);
            n += (Id)(g->node.count - count); /* the loss has moved on by one */
        }
    }
}
