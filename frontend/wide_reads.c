/* Who computes in f32 reads the f32 that an output is made of, not the narrow value before it.
 *
 * Requires: a simplified graph. Leaves: where an output is a narrow value as f32, and all who read
 * the narrow one come after that and make nothing narrow, all of them read the output. The bits
 * are the same: the numbers are, and they compute in f32 either way. What made the narrow value is
 * then read by the conversion alone, so that it is an epilogue where that can be one, and nothing
 * is stored twice. Linear in nodes and operands.
 */
#include "frontend/frontend.h"

#include <string.h>

/* By value: the output that is this narrow value as f32; or NONE. */
static Id *find_outputs(Graph *g)
{
    Id *wide = ARENA_ARRAY(g->arena, Id, g->value.count);
    bool *given = ARENA_ARRAY(g->arena, bool, g->value.count);
    memset(wide, 0xff, g->value.count * sizeof *wide);
    for (size_t i = 0; i < g->output.count; i++)
        given[g->output.at[i].use.value] = true;
    for (Id n = 0; n < g->node.count; n++)
        if (node_collects(g, &g->node.at[n]) != NONE)
            given[node_use(g, &g->node.at[n], 1).value] = true;
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        if (!(node->op->flags & OP_CONVERTS) || !given[node->value] ||
            g->value.at[node->value].dtype != F32)
            continue;
        const Use from = node_use(g, node, 0);
        const Value *narrow = &g->value.at[from.value];
        if (from.view == NONE && narrow->node != NONE && !narrow->hint &&
            dtype_is_narrow((Dtype)narrow->dtype) && wide[from.value] == NONE)
            wide[from.value] = node->value;
    }
    return wide;
}

/* Whether the node computes the same of `value` as f32: its only operand of 16 bits. */
static bool may_read_wide(const Graph *g, const Node *node, Id value)
{
    if (!(node->op->flags & (OP_ELEMENTWISE | OP_HALF)) || node->op->flags & OP_EFFECT ||
        node->op->precision == PRECISION_NARROW)
        return false;
    for (Id i = 0; i < node->uses; i++) {
        const Id read = node_use(g, node, i).value;
        if (read != NONE && read != value && dtype_is_narrow((Dtype)g->value.at[read].dtype))
            return false;
    }
    for (Id i = 0; i < node->values; i++)
        if (dtype_is_narrow((Dtype)g->value.at[node_value(node, i)].dtype))
            return false;
    return true;
}

void wide_reads(Graph *g)
{
    Id *wide = find_outputs(g);
    for (int pass = 0; pass < 2; pass++) /* who cannot; then those that all can */
        for (Id n = 0; n < g->node.count; n++) {
            const Node *node = &g->node.at[n];
            for (Id i = 0; i < node->uses; i++) {
                Use *use = &g->use.at[node->use + i];
                const Id to = use->value == NONE ? NONE : wide[use->value];
                if (to == NONE || g->value.at[to].node == n)
                    continue;
                if (pass)
                    use->value = to;
                else if (n < g->value.at[to].node || !may_read_wide(g, node, use->value))
                    wide[use->value] = NONE;
            }
        }
}
