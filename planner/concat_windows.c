/* Which operands of a concat are written by their producers straight into its result.
 *
 * Requires: clusters. Leaves: a host for each value that is in a window. A value may be in a
 * window when its producer can write with gaps, everyone who reads it can read with gaps, and
 * nothing needs it as it is (an output, another concat). Windows nest: a concat's result may be
 * in the result of a later one. Linear in operands.
 */
#include "planner/internal.h"

#include <string.h>

int concat_axis(const Graph *g, Id node)
{
    return (int)node_attr(g, node, "axis")->list[0];
}

Concats concats_find(Arena *arena, const Graph *g, const Clusters *clusters)
{
    Concats concats = {.node = ARENA_ARRAY(arena, Id, clusters->count + 1)};
    for (Id n = 0; n < g->node.count; n++)
        if (g->node.at[n].op->flags & OP_JOINS)
            concats.node[concats.count++] = n;
    concats.mode = ARENA_ARRAY(arena, uint8_t, concats.count + 1);
    return concats;
}

/* A window along the first axis that is longer than 1 has no gaps. */
static bool window_is_dense(const Value *result, int axis)
{
    for (int i = 0; i < axis; i++)
        if (result->dim[i] != 1)
            return false;
    return true;
}

static bool takes_gaps(const Node *node, Id operand)
{
    if (node->op->flags & OP_ELEMENTWISE)
        return true;
    return operand < 32 ? node->op->strided >> operand & 1 : node->op->strided == UINT32_MAX;
}

static bool takes_apart(const Node *node, Id operand)
{
    return takes_gaps(node, operand) || (operand < 32 && node->op->apart >> operand & 1);
}

/* By value: whether all who read it take it with gaps, or with gaps between its samples alone; and
 * how many concats read it. */
typedef struct {
    bool *gaps, *apart;
    bool *taken; /* an output, or read by more than one concat or twice by one */
    uint8_t *concats;
} Readers;

static Readers find_readers(Arena *arena, const Graph *g)
{
    Readers r = {ARENA_ARRAY(arena, bool, g->value.count), ARENA_ARRAY(arena, bool, g->value.count),
                 ARENA_ARRAY(arena, bool, g->value.count),
                 ARENA_ARRAY(arena, uint8_t, g->value.count)};
    memset(r.gaps, 1, g->value.count);
    memset(r.apart, 1, g->value.count);
    for (Id n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++) {
            Use use = node_use(g, &g->node.at[n], i);
            if (use.value == NONE)
                continue;
            const Node *node = &g->node.at[n];
            if (node->op->flags & OP_JOINS) {
                r.taken[use.value] |= r.concats[use.value]++ > 0;
                continue;
            }
            r.gaps[use.value] &= use.view == NONE && takes_gaps(node, i);
            r.apart[use.value] &= use.view == NONE && takes_apart(node, i);
        }
    for (size_t i = 0; i < g->output.count; i++)
        r.taken[g->output.at[i].use.value] = true;
    return r;
}

static bool writes_strides(const Graph *g, const Clusters *clusters, const Value *value)
{
    const Cluster *c = &clusters->at[clusters->of[value->node]];
    const OpRow *op =
        g->node.at[clusters->node[c->node]].op; /* with an epilogue it writes that too */
    return op->flags & OP_ELEMENTWISE || op->out_strided >> value->output & 1;
}

/* How a result lies that values may be written into: without gaps, or with some between samples. */
typedef struct {
    bool is_dense, is_apart;
} Host;

static bool may_lie(const Graph *g, const Clusters *clusters, const Readers *readers,
                    const Node *concat, Use use, int axis, Host host)
{
    const Value *value = use.value == NONE ? NULL : &g->value.at[use.value];
    if (!value || value->kind != VALUE_RESULT || value->node == NONE || value->whole != NONE ||
        use.view != NONE || readers->taken[use.value] ||
        g->node.at[value->node].program != concat->program || value_is_version(g, use.value))
        return false;
    if (host.is_dense && window_is_dense(&g->value.at[concat->value], axis))
        return true;
    return writes_strides(g, clusters, value) &&
           (readers->gaps[use.value] || (host.is_apart && axis == 1 && readers->apart[use.value]));
}

/* By cluster: whether the order runs it once. What is computed again goes where there is room. */
static bool *find_once(Arena *arena, const Clusters *clusters, const Order *order)
{
    Id *runs = ARENA_ARRAY(arena, Id, clusters->count);
    bool *once = ARENA_ARRAY(arena, bool, clusters->count);
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < order->count[p]; i++)
            runs[order->cluster[p][i]]++;
    for (Id i = 0; i < clusters->count; i++)
        once[i] = runs[i] == 1;
    return once;
}

/* Hosts first: the buffer of a concat's own result decides whether its windows have gaps. */
void windows_set(Arena *arena, const Graph *g, const Clusters *clusters, const Order *order,
                 const Concats *concats, Windows *windows)
{
    const bool *once = find_once(arena, clusters, order);
    Readers readers = find_readers(arena, g);
    bool *apart = ARENA_ARRAY(arena, bool, g->value.count); /* the window: no gaps in a sample */
    memset(windows->host, 0xff, g->value.count * sizeof *windows->host);
    for (Id k = concats->count; k-- > 0;) {
        const Node *node = &g->node.at[concats->node[k]];
        if (g->value.at[node->value].whole != NONE)
            continue; /* it moves with the micro-batch */
        int axis = concat_axis(g, concats->node[k]);
        const bool is_root = windows->host[node->value] == NONE;
        const Host host = {is_root, is_root || apart[node->value]};
        Id last = NONE; /* the operand made last: its window delays nothing */
        for (Id i = 0; i < node->uses; i++) {
            Use use = node_use(g, node, i);
            Id made = g->value.at[use.value].node;
            if (made != NONE && (last == NONE || made > g->value.at[last].node))
                last = use.value;
        }
        int64_t begin = 0;
        for (Id i = 0; i < node->uses; i++) {
            Use use = node_use(g, node, i);
            Id made = use.value == NONE ? NONE : g->value.at[use.value].node;
            if (!once[clusters->of[concats->node[k]]] || made == NONE ||
                !once[clusters->of[made]]) {
                begin += use_view(g, use).dim[axis];
                continue;
            }
            bool wanted = concats->mode[k] == WINDOW_ALL ||
                          (concats->mode[k] == WINDOW_LAST && use.value == last);
            if (wanted && may_lie(g, clusters, &readers, node, use, axis, host)) {
                windows->host[use.value] = node->value;
                apart[use.value] = host.is_apart &&
                                   (axis == 1 || window_is_dense(&g->value.at[node->value], axis));
                windows->begin[use.value] = begin;
            }
            begin += use_view(g, use).dim[axis];
        }
    }
}
