/* Sums and products with one number for each channel become one product and one sum.
 *
 * Requires: a simplified graph of inference. Leaves: for a chain such as that of batchnorm, of
 * values that only the next of it reads, ((x - m) * f) + c with m, f and c made of parameters
 * alone, x * f + ((0 - m) * f + c), in place of the last of the chain; what was between is unread
 * and removed by the next simplify. A bias that the op before it adds for each channel is part of
 * it. Both factors and addends are then ready before anything runs (prepare.c), and the rest is an
 * epilogue of two operations. Weights stay as they are: they are saved as they were loaded, and
 * take no second copy. Rounds otherwise than the chain does, so it is done wherever it can be,
 * whatever the budget. Linear in nodes and operands.
 */
#include "frontend/frontend.h"

#include <string.h>

typedef struct {
    Graph *g;
    const bool *constant; /* by value */
    const Id *readers;    /* by value: how many */
    Id *reader;           /* by value: a node that reads it */
    Id *same;             /* by value: what stands for it from now on; NONE: itself */
    bool *joined;         /* by node: it is in a chain */
    size_t values;        /* of the graph as it was */
} Joining;

enum { MOST_STEPS = 16 }; /* of a chain that are followed */

/* One of a chain: what it does to operand `at`, with a number for each channel. */
typedef struct {
    Id node, at;
    Use other;
    bool scales;
} Step;

/* What differs along axis 1 alone, as a vector; value NONE: it differs along others. */
static Use along_channels(const Joining *s, Use use)
{
    static const Use nothing = {NONE, NONE};
    if (use.value == NONE || !s->constant[use.value])
        return nothing;
    const View view = use_view(s->g, use);
    View vector = {.offset = view.offset, .rank = 1};
    for (int i = 0; i < view.rank; i++)
        if (i != 1 && view.dim[i] > 1 && view.stride[i] != 0)
            return nothing;
    vector.dim[0] = view.dim[1];
    vector.stride[0] = view.stride[1];
    return use_make(s->g, use.value, vector);
}

static bool is_f32(const Graph *g, const Node *node)
{
    for (Id i = 0; i < node->uses; i++)
        if (node_use(g, node, i).value != NONE &&
            g->value.at[node_use(g, node, i).value].dtype != F32)
            return false;
    return g->value.at[node->value].dtype == F32;
}

/* Whether the node multiplies `value` or adds to it by channel, along axis 1. */
static bool is_step(const Joining *s, Id id, Id value, Step *step)
{
    const Node *node = &s->g->node.at[id];
    if (!(node->op->flags & OP_ELEMENTWISE) || node->uses != 2 || !is_f32(s->g, node) ||
        s->g->value.at[node->value].hint || s->g->value.at[node->value].rank < 2)
        return false;
    const Id at = node_use(s->g, node, 0).value == value ? 0 : 1;
    const bool adds = node->op->linear & LINEAR_TOGETHER && at == 0;
    if (node_use(s->g, node, at).view != NONE)
        return false;
    *step = (Step){.node = id, .at = at, .other = along_channels(s, node_use(s->g, node, 1 - at))};
    step->scales = node->op->linear & (at == 0 ? LINEAR_FIRST : LINEAR_SECOND);
    return step->other.value != NONE && (adds || step->scales);
}

/* The steps from a value on, each the only reader of the one before. */
static int find_steps(const Joining *s, Id value, Step *step)
{
    int count = 0;
    while (count < MOST_STEPS && s->readers[value] == 1 && !s->g->value.at[value].hint &&
           !s->joined[s->reader[value]] && is_step(s, s->reader[value], value, &step[count]))
        value = s->g->node.at[step[count++].node].value;
    return count;
}

/* What a step makes of a number for each channel. */
static Use take(Graph *g, const Step *step, Use vector)
{
    const Call at = call_at(g, step->node);
    const Use first = step->at == 0 ? vector : step->other;
    return call_op(g, &at, g->node.at[step->node].op->name, 2,
                   (Use[]){first, step->at == 0 ? step->other : vector});
}

/* The factor so far; value NONE: 1, which need not be multiplied. */
static Use scale(Graph *g, const Step *step, Use factor)
{
    const bool product = g->node.at[step->node].op->linear == (LINEAR_FIRST | LINEAR_SECOND);
    if (factor.value == NONE && product)
        return step->other;
    return take(g, step, factor.value == NONE ? graph_literal(g, 1, F32) : factor);
}

/* The vector along the channels of a value. */
static Use by_channel(Graph *g, Use vector, Id value)
{
    const View from = use_view(g, vector);
    View view = {.offset = from.offset, .rank = g->value.at[value].rank};
    for (int i = 0; i < view.rank; i++)
        view.dim[i] = 1;
    view.dim[1] = from.dim[0];
    view.stride[1] = from.stride[0];
    return use_make(g, vector.value, view);
}

/* A chain from `value` on: a product where there is a factor, and a sum. */
static void join(Joining *s, Id value, Use bias, const Step *step, int steps)
{
    Graph *g = s->g;
    const Node last = g->node.at[step[steps - 1].node];
    const Call at = call_at(g, step[steps - 1].node);
    Use factor = {NONE, NONE}, x = use_of(value);
    Use addend = bias.value == NONE ? graph_literal(g, 0, F32) : bias;
    for (int i = 0; i < steps; i++) {
        factor = step[i].scales ? scale(g, &step[i], factor) : factor;
        addend = take(g, &step[i], addend);
        s->joined[step[i].node] = true;
    }
    if (factor.value != NONE)
        x = call_op(g, &at, "mul", 2, (Use[]){x, by_channel(g, factor, value)});
    x = call_op(g, &at, "add", 2, (Use[]){x, by_channel(g, addend, value)});
    s->same[last.value] = x.value;
}

/* The bias of an op becomes a sum after it, or part of what comes after it. */
static void join_bias(Joining *s, Id id)
{
    Graph *g = s->g;
    const Node node = g->node.at[id];
    const Id operand = node.op->addend;
    const Use bias = operand ? node_use(g, &node, operand) : (Use){NONE, NONE};
    Step step[MOST_STEPS];
    if (bias.value == NONE || bias.view != NONE || !s->constant[bias.value] || !is_f32(g, &node) ||
        g->value.at[node.value].hint)
        return;
    const int steps = find_steps(s, node.value, step);
    if (steps == 0)
        return;
    g->use.at[node.use + operand] = (Use){NONE, NONE};
    join(s, node.value, bias, step, steps);
}

/* Whoever read the last of a chain reads what became of it. */
static void redirect(const Joining *s)
{
    Graph *g = s->g;
    for (size_t i = 0; i < g->use.count; i++)
        if (g->use.at[i].value < s->values && s->same[g->use.at[i].value] != NONE)
            g->use.at[i].value = s->same[g->use.at[i].value];
    for (size_t i = 0; i < g->output.count; i++)
        if (s->same[g->output.at[i].use.value] != NONE)
            g->output.at[i].use.value = s->same[g->output.at[i].use.value];
}

void join_affine(Graph *g)
{
    const Id nodes = (Id)g->node.count;
    const size_t values = g->value.count;
    Joining s = {.g = g,
                 .constant = graph_constants(g),
                 .readers = graph_readers(g),
                 .reader = ARENA_ARRAY(g->arena, Id, values + 1),
                 .same = ARENA_ARRAY(g->arena, Id, values + 1),
                 .joined = ARENA_ARRAY(g->arena, bool, nodes + 1),
                 .values = values};
    Step step[MOST_STEPS];
    memset(s.same, 0xff, values * sizeof *s.same);
    for (Id n = 0; n < nodes; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++)
            if (node_use(g, &g->node.at[n], i).value != NONE)
                s.reader[node_use(g, &g->node.at[n], i).value] = n;
    for (Id n = 0; n < nodes; n++)
        join_bias(&s, n);
    for (Id n = 0; n < nodes; n++) { /* what comes of anything else */
        const Id value = g->node.at[n].value;
        const int steps = s.constant[value] || s.joined[n] ? 0 : find_steps(&s, value, step);
        bool scaled = false;
        for (int i = 0; i < steps; i++)
            scaled |= step[i].scales;
        if (steps > 1 + scaled) /* it becomes shorter */
            join(&s, value, (Use){NONE, NONE}, step, steps);
    }
    redirect(&s);
    graph_sort(g);
}
