/* What hangs on parameters alone becomes a program of its own: prepare, which runs once after they
 * were written.
 *
 * Requires: a simplified graph of inference. Leaves: nodes that depend on parameters, constants and
 * state alone in the program prepare, first of all, where what others read of them is kept
 * (VALUE_PREPARED), and otherwise where they were, to run at each call. The same nodes either way,
 * so the same bits. What is kept is what saves the most work for each of its bytes, up to as many
 * as are allowed; more bytes keep the same and more. What is larger than all that it is made of is
 * not kept: to read it would take longer than to make it. Linear in operands for each of the tries,
 * of which there are as many as the logarithm of the nodes.
 */
#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

enum {
    STARTED = 8000, /* operations that could be done while an op is started */
    LARGER = 2,     /* times as large as what it is made of */
    ALIGN = 64,
};

typedef struct {
    Graph *g;
    const bool *constant; /* by value */
    double *worth;        /* by node: work saved for each byte of its results; 0: none */
    bool *needed;         /* by value: nodes of the forward program read it, as it stands */
    bool *kept, *called;  /* by node: its results are kept; it runs at each call */
    bool *before;         /* by node: it runs in prepare */
} Preparing;

bool *graph_constants(const Graph *g)
{
    enum { ACTS = OP_RANDOM | OP_EFFECT | OP_LOOKS_UP | OP_HOST };
    bool *constant = ARENA_ARRAY(g->arena, bool, g->value.count + 1);
    bool *seen = ARENA_ARRAY(g->arena, bool, g->value.count + 1); /* by others, or changed */
    for (Id v = 0; v < g->value.count; v++) {
        seen[v] |= g->value.at[v].hint || g->value.at[v].whole != NONE;
        if (value_is_version(g, v))
            seen[value_first(g, v)] = seen[v] = true;
    }
    for (size_t i = 0; i < g->output.count; i++)
        seen[g->output.at[i].use.value] = true;
    for (Id v = 0; v < g->value.count; v++) {
        const uint8_t kind = g->value.at[v].kind;
        constant[v] =
            !seen[v] && (kind == VALUE_PARAM || kind == VALUE_CONST || kind == VALUE_STATE);
    }
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        bool made = false, good = !(node->op->flags & ACTS) && !node->op->ranks;
        for (Id i = 0; i < node->uses; i++) {
            const Id value = node_use(g, node, i).value;
            if (value == NONE || g->value.at[value].kind == VALUE_LITERAL)
                continue;
            made = true; /* of numbers alone it is no parameter's */
            good &= constant[value];
        }
        for (Id i = 0; i < node->values; i++)
            good &= !seen[node_value(node, i)];
        for (Id i = 0; i < node->values; i++)
            constant[node_value(node, i)] = made && good;
    }
    return constant;
}

static bool is_constant(const Preparing *p, const Node *node)
{
    return node->values && p->constant[node->value];
}

/* ---- What it is worth ----------------------------------------------------------------------- */

static double bytes_of(const Graph *g, const Node *node)
{
    double bytes = 0;
    for (Id i = 0; i < node->values; i++)
        bytes += (double)value_bytes(&g->value.at[node_value(node, i)]);
    return bytes;
}

/* By node: what it takes to make it out of parameters, for each byte that it takes. */
static void find_worth(Preparing *p)
{
    const Graph *g = p->g;
    double *work = ARENA_ARRAY(g->arena, double, g->node.count + 1);
    double *from = ARENA_ARRAY(g->arena, double, g->node.count + 1); /* bytes of parameters */
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        if (!is_constant(p, node))
            continue;
        work[n] = STARTED + (node->op->flops ? node->op->flops(g, n)
                                             : (double)value_count(&g->value.at[node->value]));
        for (Id i = 0; i < node->uses; i++) {
            const Id value = node_use(g, node, i).value;
            if (value == NONE || g->value.at[value].kind == VALUE_LITERAL)
                continue;
            const Id maker = g->value.at[value].node;
            work[n] += (maker == NONE ? 0 : work[maker]) + (double)value_count(&g->value.at[value]);
            from[n] += maker == NONE ? (double)value_bytes(&g->value.at[value]) : from[maker];
        }
        if (bytes_of(g, node) <= LARGER * from[n])
            p->worth[n] = work[n] / bytes_of(g, node);
    }
}

/* ---- What is kept --------------------------------------------------------------------------- */

static void need_operands(Preparing *p, const Node *node)
{
    for (Id i = 0; i < node->uses; i++)
        if (node_use(p->g, node, i).value != NONE)
            p->needed[node_use(p->g, node, i).value] = true;
}

static bool is_needed(const Preparing *p, const Node *node)
{
    bool needed = false;
    for (Id i = 0; i < node->values; i++)
        needed |= p->needed[node_value(node, i)];
    return needed;
}

/* Keeps what is worth as much; the bytes that this takes. */
static uint64_t keep(Preparing *p, double worth)
{
    const Graph *g = p->g;
    uint64_t bytes = 0;
    memset(p->needed, 0, g->value.count * sizeof *p->needed);
    for (Id n = (Id)g->node.count; n-- > 0;) {
        const Node *node = &g->node.at[n];
        const bool needed = is_needed(p, node);
        p->kept[n] = is_constant(p, node) && needed && p->worth[n] > 0 && p->worth[n] >= worth;
        p->called[n] = !is_constant(p, node) || (needed && !p->kept[n]);
        if (p->called[n])
            need_operands(p, node);
        for (Id i = 0; i < node->values && p->kept[n]; i++)
            if (p->needed[node_value(node, i)])
                bytes +=
                    (value_bytes(&g->value.at[node_value(node, i)]) + ALIGN - 1) / ALIGN * ALIGN;
    }
    return bytes;
}

static int downwards(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* As much as is allowed, by what it is worth. */
static bool keep_most(Preparing *p, uint64_t most)
{
    const Graph *g = p->g;
    double *worth = ARENA_ARRAY(g->arena, double, g->node.count + 1);
    size_t count = 0;
    for (Id n = 0; n < g->node.count; n++)
        if (p->worth[n] > 0)
            worth[count++] = p->worth[n];
    if (count == 0)
        return false;
    qsort(worth, count, sizeof *worth, downwards);
    size_t low = 0, high = count; /* the first `low` are within it */
    while (low < high) {
        const size_t middle = (low + high + 1) / 2;
        if (keep(p, worth[middle - 1]) <= most)
            low = middle;
        else
            high = middle - 1;
    }
    return low && keep(p, worth[low - 1]) <= most;
}

/* ---- The program ---------------------------------------------------------------------------- */

/* What prepare runs: what makes the values that are kept. */
static void find_before(Preparing *p)
{
    const Graph *g = p->g;
    for (Id n = (Id)g->node.count; n-- > 0;) {
        const Node *node = &g->node.at[n];
        p->before[n] |= p->kept[n];
        for (Id i = 0; i < node->uses && p->before[n]; i++) {
            const Id value = node_use(g, node, i).value;
            if (value != NONE && g->value.at[value].node != NONE)
                p->before[g->value.at[value].node] = true;
        }
    }
}

/* A node that prepare runs beside the one that each call runs, with results of its own. */
static Node twin(Graph *g, Node node, Id *as)
{
    const Id use = (Id)g->use.count, value = (Id)g->value.count;
    for (Id i = 0; i < node.uses; i++) {
        const Use own = g->use.at[node.use + i];
        ARRAY_PUSH(g->arena, &g->use, own);
    }
    for (Id i = 0; i < node.values; i++) {
        const Value own = g->value.at[node_value(&node, i)];
        as[node_value(&node, i)] = (Id)g->value.count;
        ARRAY_PUSH(g->arena, &g->value, own);
    }
    node.use = use;
    node.value = value;
    return node;
}

/* Moves to the front what prepare runs. */
static void place(Preparing *p)
{
    Graph *g = p->g;
    const Id count = (Id)g->node.count;
    const size_t values = g->value.count;
    Node *to = ARENA_ARRAY(g->arena, Node, 2 * (size_t)count + 1);
    Id *as = ARENA_ARRAY(g->arena, Id, values + 1), placed = 0; /* by value: that of its twin */
    for (Id v = 0; v < values; v++)
        as[v] = v;
    for (Id n = 0; n < count; n++) {
        if (!p->before[n])
            continue;
        Node node = p->called[n] ? twin(g, g->node.at[n], as) : g->node.at[n];
        for (Id i = 0; i < node.uses; i++) {
            Use *use = &g->use.at[node.use + i];
            use->value = use->value == NONE ? NONE : as[use->value];
        }
        for (Id i = 0; i < node.values; i++) {
            Value *value = &g->value.at[node_value(&node, i)];
            value->program = PROGRAM_PREPARE;
            if (p->kept[n] && p->needed[node_value(&node, i)])
                value->kind = VALUE_PREPARED;
        }
        node.program = PROGRAM_PREPARE;
        to[placed++] = node;
    }
    for (Id n = 0; n < count; n++)
        if (p->called[n])
            to[placed++] = g->node.at[n];
    g->node.count = 0;
    for (Id n = 0; n < placed; n++) {
        for (Id i = 0; i < to[n].values; i++)
            g->value.at[node_value(&to[n], i)].node = n;
        ARRAY_PUSH(g->arena, &g->node, to[n]);
    }
}

void prepare(Graph *g, uint64_t bytes)
{
    Preparing p = {.g = g,
                   .constant = graph_constants(g),
                   .worth = ARENA_ARRAY(g->arena, double, g->node.count + 1),
                   .needed = ARENA_ARRAY(g->arena, bool, g->value.count + 1),
                   .kept = ARENA_ARRAY(g->arena, bool, g->node.count + 1),
                   .called = ARENA_ARRAY(g->arena, bool, g->node.count + 1),
                   .before = ARENA_ARRAY(g->arena, bool, g->node.count + 1)};
    find_worth(&p);
    if (!keep_most(&p, bytes))
        return;
    find_before(&p);
    place(&p);
}

uint64_t prepared_bytes(const Graph *g)
{
    uint64_t bytes = 0;
    for (size_t v = 0; v < g->value.count; v++)
        if (g->value.at[v].kind == VALUE_PREPARED)
            bytes += value_bytes(&g->value.at[v]);
    return bytes;
}
