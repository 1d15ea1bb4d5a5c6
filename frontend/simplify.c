/* Removes nodes that no output, loss or effect needs and merges equal ones.
 *
 * Requires: a lowered graph. Leaves: the same order without gaps in the node table; values of
 * removed nodes keep their Id and belong to no node. Linear in nodes and operands.
 */
#include "frontend/base/names.h"
#include "frontend/frontend.h"

#include <string.h>

/* ---- Merging equal nodes -------------------------------------------------------------------- */

static uint64_t hash_use(const Graph *g, Use use, uint64_t hash)
{
    if (use.value != NONE && g->value.at[use.value].kind == VALUE_LITERAL) {
        const Value *value = &g->value.at[use.value];
        hash = hash_bytes(&value->literal, sizeof value->literal, hash + value->dtype);
    } else {
        hash = hash_bytes(&use.value, sizeof use.value, hash);
    }
    if (use.view != NONE) {
        const View *view = &g->view.at[use.view];
        hash = hash_bytes(&view->offset, sizeof view->offset, hash + view->rank);
        hash = hash_bytes(view->dim, view->rank * sizeof *view->dim, hash);
        hash = hash_bytes(view->stride, view->rank * sizeof *view->stride, hash);
    }
    return hash;
}

static bool same_use(const Graph *g, Use a, Use b)
{
    if (a.value != b.value) {
        if (a.value == NONE || b.value == NONE)
            return false;
        const Value *m = &g->value.at[a.value], *n = &g->value.at[b.value];
        if (m->kind != VALUE_LITERAL || n->kind != VALUE_LITERAL || m->dtype != n->dtype ||
            memcmp(&m->literal, &n->literal, sizeof m->literal) != 0)
            return false;
    }
    if (a.view == b.view)
        return true;
    if (a.view == NONE || b.view == NONE)
        return false;
    const View *v = &g->view.at[a.view], *w = &g->view.at[b.view];
    return v->rank == w->rank && v->offset == w->offset &&
           memcmp(v->dim, w->dim, v->rank * sizeof *v->dim) == 0 &&
           memcmp(v->stride, w->stride, v->rank * sizeof *v->stride) == 0;
}

static int settings(const OpRow *op)
{
    int count = 0;
    while (count < MAX_ARGS && op->args[count].name)
        count++;
    return count;
}

static bool same_attr(const Attr *a, const Attr *b)
{
    return a->number == b->number && a->count == b->count &&
           memcmp(a->list, b->list, a->count * sizeof *a->list) == 0;
}

static uint64_t hash_node(const Graph *g, const Node *node)
{
    uint64_t hash = hash_bytes(node->op->name, strlen(node->op->name), node->program);
    for (Id i = 0; i < node->uses; i++)
        hash = hash_use(g, node_use(g, node, i), hash);
    for (int i = 0; i < settings(node->op); i++) {
        const Attr *attr = &g->attr.at[node->attr + (Id)i];
        hash = hash_bytes(&attr->number, sizeof attr->number, hash);
        hash = hash_bytes(attr->list, attr->count * sizeof *attr->list, hash);
    }
    return hash;
}

static bool same_node(const Graph *g, const Node *a, const Node *b)
{
    if (a->op != b->op || a->program != b->program || a->phase != b->phase || a->uses != b->uses ||
        a->values != b->values)
        return false;
    for (Id i = 0; i < a->uses; i++)
        if (!same_use(g, node_use(g, a, i), node_use(g, b, i)))
            return false;
    for (int i = 0; i < settings(a->op); i++)
        if (!same_attr(&g->attr.at[a->attr + (Id)i], &g->attr.at[b->attr + (Id)i]))
            return false;
    for (Id i = 0; i < a->values; i++) /* a product may be stored in several ways */
        if (g->value.at[node_value(a, i)].dtype != g->value.at[node_value(b, i)].dtype)
            return false;
    return true;
}

/* Values with a hint are what the user named: they stay themselves. */
static bool mergeable(const Graph *g, const Node *node)
{
    if (node->op->flags & (OP_RANDOM | OP_EFFECT))
        return false;
    for (Id i = 0; i < node->values; i++)
        if (g->value.at[node_value(node, i)].hint)
            return false;
    return true;
}

/* Whether both nodes make an output: the caller has separate memory for each. Otherwise what they
 * make is one from now on. */
static bool stay_apart(bool *output, const Node *first, const Node *node)
{
    for (Id k = 0; k < node->values; k++)
        if (output[node_value(first, k)] && output[node_value(node, k)])
            return true;
    for (Id k = 0; k < node->values; k++)
        output[node_value(first, k)] |= output[node_value(node, k)];
    return false;
}

/* Fills same[value] with the value that replaces it. */
static void merge(Graph *g, Id *same)
{
    bool *output = ARENA_ARRAY(g->arena, bool, g->value.count);
    for (size_t i = 0; i < g->output.count; i++)
        output[g->output.at[i].use.value] = true;
    size_t capacity = 64;
    while (capacity < 2 * g->node.count)
        capacity *= 2;
    Id *table = ARENA_ARRAY(g->arena, Id, capacity); /* node + 1; 0: free */
    for (size_t i = 0; i < g->node.count; i++) {
        Node *node = &g->node.at[i];
        for (Id k = 0; k < node->uses; k++) {
            Use *use = &g->use.at[node->use + k];
            use->value = use->value == NONE ? NONE : same[use->value];
        }
        if (!mergeable(g, node))
            continue;
        size_t slot = hash_node(g, node) & (capacity - 1);
        while (table[slot] && !same_node(g, &g->node.at[table[slot] - 1], node))
            slot = (slot + 1) & (capacity - 1);
        if (!table[slot]) {
            table[slot] = (Id)i + 1;
            continue;
        }
        const Node *first = &g->node.at[table[slot] - 1];
        if (stay_apart(output, first, node))
            continue;
        for (Id k = 0; k < node->values; k++)
            same[node_value(node, k)] = node_value(first, k);
    }
}

/* ---- Removing unused nodes ------------------------------------------------------------------ */

static void need(bool *needed, const Graph *g, Use use)
{
    if (use.value != NONE && g->value.at[use.value].node != NONE)
        needed[g->value.at[use.value].node] = true;
}

static bool *find_needed(const Graph *g)
{
    bool *needed = ARENA_ARRAY(g->arena, bool, g->node.count);
    for (size_t i = 0; i < g->output.count; i++)
        need(needed, g, g->output.at[i].use);
    for (size_t i = g->node.count; i-- > 0;) {
        const Node *node = &g->node.at[i];
        needed[i] |= (node->op->flags & OP_EFFECT) != 0;
        for (Id k = 0; needed[i] && k < node->uses; k++)
            need(needed, g, node_use(g, node, k));
    }
    return needed;
}

static void compact(Graph *g, const bool *needed)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->node.count; i++) {
        const Node node = g->node.at[i];
        for (Id k = 0; k < node.values; k++)
            g->value.at[node_value(&node, k)].node = needed[i] ? (Id)kept : NONE;
        if (needed[i])
            g->node.at[kept++] = node;
    }
    g->node.count = kept;
}

void simplify(Graph *g)
{
    Id *same = ARENA_ARRAY(g->arena, Id, g->value.count);
    for (size_t i = 0; i < g->value.count; i++)
        same[i] = (Id)i;
    merge(g, same);
    for (size_t i = 0; i < g->output.count; i++)
        g->output.at[i].use.value = same[g->output.at[i].use.value];
    if (g->train.present)
        g->train.loss.value = same[g->train.loss.value];
    compact(g, find_needed(g));
}
