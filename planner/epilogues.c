/* Gives products the elementwise nodes that follow them as an epilogue: their kernel runs these on
 * what it has just made, so the product itself is never stored.
 *
 * Requires: groups of nodes, each named by the node at whose place it runs, its last. Leaves: the
 * same, where a product with an epilogue is a group too. Linear in nodes and operands.
 *
 * An epilogue is a group of elementwise nodes or the first nodes of one; the rest stays a loop.
 * Only the epilogue reads the product, and nothing outside reads what the epilogue makes on
 * its way: there is one result. So nothing is lost to the planner: what a plan may want to keep, or
 * to compute again without the product, is never inside. The product stays where it is, so that
 * what it reads does not live longer, unless the epilogue has to wait for something small (a factor
 * for each channel).
 */
#include "planner/internal.h"

#include <string.h>

enum { SMALL_PART = 8 /* of the product's bytes: what it may wait for */ };

typedef struct {
    const Graph *g;
    const Id *update; /* by value: see fuse_limit */
    Id *home;         /* by node: the node that names its group */
    Id *first, *next; /* the nodes of a group in order: by its name, by node */
    Id *reads;        /* by value: operands that are it, and one more where it must be stored */
    Id *reader;       /* by value: one of the nodes that read it */
} Epilogues;

static void list_groups(Epilogues *t)
{
    size_t bytes = t->g->node.count * sizeof *t->first;
    memset(t->first, 0xff, bytes);
    for (Id n = (Id)t->g->node.count; n-- > 0;) {
        t->next[n] = t->first[t->home[n]];
        t->first[t->home[n]] = n;
    }
}

static void count_reads(Epilogues *t)
{
    const Graph *g = t->g;
    memset(t->reader, 0xff, g->value.count * sizeof *t->reader);
    for (Id v = 0; v < g->value.count; v++)
        t->reads[v] = g->value.at[v].hint || value_is_version(g, v);
    for (size_t i = 0; i < g->output.count; i++)
        t->reads[g->output.at[i].use.value]++;
    for (Id n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++) {
            Id value = node_use(g, &g->node.at[n], i).value;
            if (value == NONE)
                continue;
            t->reads[value]++;
            t->reader[value] = n;
        }
}

/* Whether all readers of the value are nodes of the epilogue, and read it without a view. */
static bool stays_inside(const Epilogues *t, Id value, const Id *epilogue, Id nodes)
{
    Id found = 0;
    for (Id k = 0; k < nodes; k++)
        for (Id i = 0; i < t->g->node.at[epilogue[k]].uses; i++) {
            Use use = node_use(t->g, &t->g->node.at[epilogue[k]], i);
            found += use.value == value && use.view == NONE;
        }
    return found == t->reads[value];
}

/* The last node may make a new version of what it reads, where the kernel keeps sums aside. */
static bool fits_behind(const Graph *g, const Node *product, const Node *node, bool is_last)
{
    const Value *made = &g->value.at[product->value], *value = &g->value.at[node->value];
    const bool updates =
        is_last && product->op->flags & OP_ASIDE && value_is_version(g, node->value);
    return node->op->flags & OP_ELEMENTWISE && (!(node->op->flags & OP_EFFECT) || updates) &&
           node->program == product->program && node->phase == product->phase &&
           made->rank == value->rank &&
           memcmp(made->dim, value->dim, made->rank * sizeof *made->dim) == 0;
}

/* Bytes that the epilogue reads and that are made only after the product, where their group runs.
 */
static uint64_t waits_for(const Epilogues *t, Id product, const Id *epilogue, Id nodes)
{
    uint64_t bytes = 0;
    for (Id k = 0; k < nodes; k++)
        for (Id i = 0; i < t->g->node.at[epilogue[k]].uses; i++) {
            Id value = node_use(t->g, &t->g->node.at[epilogue[k]], i).value;
            Id maker = value == NONE ? NONE : t->g->value.at[value].node;
            bool inside = false;
            for (Id m = 0; m < k; m++)
                inside |= epilogue[m] == maker;
            if (maker != NONE && t->home[maker] > product && !inside)
                bytes += value_bytes(&t->g->value.at[value]);
        }
    return bytes;
}

/* Whether the kernel, or its epilogue, can produce a value of this dtype. */
static bool takes_epilogue(const OpRow *op, const Value *value)
{
    return value->dtype == F32 || (op->flags & OP_HALF && dtype_is_narrow((Dtype)value->dtype));
}

static bool may_follow(const Epilogues *t, Id product, const Id *epilogue, Id nodes)
{
    const Graph *g = t->g;
    const Node *node = &g->node.at[product];
    const Value *made = &g->value.at[node->value];
    Id last = epilogue[nodes - 1];
    const Value *left = &g->value.at[g->node.at[last].value];
    if (!takes_epilogue(node->op, left) || !stays_inside(t, node->value, epilogue, nodes))
        return false;
    if (left->dtype != F32 && left->dtype != made->dtype) /* a product of f32 stores f32 */
        return false;
    if (!(node->op->flags & OP_EPILOGUE) && !value_is_version(g, g->node.at[last].value))
        return false;
    for (Id k = 0; k < nodes; k++)
        if (!fits_behind(g, node, &g->node.at[epilogue[k]], k + 1 == nodes) ||
            (k + 1 < nodes && !stays_inside(t, g->node.at[epilogue[k]].value, epilogue, nodes)))
            return false;
    const uint64_t waits = waits_for(t, product, epilogue, nodes);
    return !waits ||
           (waits <= value_bytes(made) / SMALL_PART && fuse_limit(g, node, t->update) > last);
}

/* The longest epilogue that the product can have, out of the group that reads it. */
static void find_epilogue(Epilogues *t, Id product)
{
    const Node *node = &t->g->node.at[product];
    Id reader = t->reader[node->value], epilogue[FUSE_MAX_NODES], nodes = 0;
    if (!takes_epilogue(node->op, &t->g->value.at[node->value]) || reader == NONE)
        return;
    Id group = t->home[reader];
    for (Id n = t->first[group]; n != NONE && nodes < FUSE_MAX_NODES; n = t->next[n])
        epilogue[nodes++] = n;
    while (nodes > 0 && !may_follow(t, product, epilogue, nodes))
        nodes--;
    if (!nodes)
        return;
    Id last = epilogue[nodes - 1], place = waits_for(t, product, epilogue, nodes) ? last : product;
    t->first[group] = t->next[last]; /* of the group that stays, where there is one */
    t->home[product] = place;
    for (Id k = 0; k < nodes; k++)
        t->home[epilogue[k]] = place;
}

void fuse_epilogues(Arena *arena, const Graph *g, const Id *update, Id *home)
{
    Epilogues t = {.g = g,
                   .update = update,
                   .home = home,
                   .first = ARENA_ARRAY(arena, Id, g->node.count),
                   .next = ARENA_ARRAY(arena, Id, g->node.count),
                   .reads = ARENA_ARRAY(arena, Id, g->value.count),
                   .reader = ARENA_ARRAY(arena, Id, g->value.count)};
    list_groups(&t);
    count_reads(&t);
    for (Id n = 0; n < g->node.count; n++)
        if (g->node.at[n].op->flags & (OP_EPILOGUE | OP_ASIDE) && home[n] == n)
            find_epilogue(&t, n);
}

bool cluster_has_epilogue(const Graph *g, const Clusters *clusters, const Cluster *c)
{
    return c->nodes > 1 && !(g->node.at[clusters->node[c->node]].op->flags & OP_ELEMENTWISE);
}

bool cluster_keeps_aside(const Graph *g, const Clusters *clusters, const Cluster *c)
{
    const Node *last = &g->node.at[clusters->node[c->node + c->nodes - 1]];
    return cluster_has_epilogue(g, clusters, c) && value_is_version(g, last->value);
}
