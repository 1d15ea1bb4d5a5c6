/* Whether the target has kernels for what a model was lowered to: asked here, once, for every node.
 * Requires a graph with the spans of its source; leaves a message at each op that the target lacks.
 */
#include "planner/internal.h"

static Dtype dtype_at(const Graph *g, Id value)
{
    return value == NONE ? F32 : (Dtype)g->value.at[value].dtype;
}

/* What the target has for an op: all of its dtypes, or those but the narrow ones. */
static bool has_dtype(const Target *target, const OpRow *op, Dtype dtype)
{
    const bool narrow = dtype_is_narrow(dtype) && op->flags & OP_HALF;
    return (!target->dtypes || target->dtypes >> dtype & 1) &&
           (!narrow || !target->has_half || target->has_half(op));
}

/* The first dtype of its operands and results that the target does not have; or DTYPES. */
static Dtype lacking(const Graph *g, const Target *target, const Node *node)
{
    for (Id i = 0; i < node->uses; i++)
        if (!has_dtype(target, node->op, dtype_at(g, node_use(g, node, i).value)))
            return dtype_at(g, node_use(g, node, i).value);
    for (Id i = 0; i < node->values; i++)
        if (!has_dtype(target, node->op, dtype_at(g, node_value(node, i))))
            return dtype_at(g, node_value(node, i));
    return DTYPES;
}

/* Rows that were asked about, so that none is asked twice. */
typedef struct {
    ARRAY(const OpRow *) op;
} Asked;

static bool has_op(Asked *asked, const Graph *g, const Target *target, const OpRow *op)
{
    for (size_t i = asked->op.count; i-- > 0;)
        if (asked->op.at[i] == op)
            return true;
    if (target->has_op && !target->has_op(op))
        return false;
    ARRAY_PUSH(g->arena, &asked->op, op);
    return true;
}

bool supports(const Graph *g, const Target *target)
{
    bool good = true;
    Asked asked = {0};
    for (size_t i = 0; i < g->node.count; i++) {
        const Node *node = &g->node.at[i];
        const Dtype dtype = lacking(g, target, node);
        if (dtype != DTYPES) {
            good = diag_error(g->diag, node->span, "%s: the target %s has no %s", node->op->name,
                              target->name, dtype_name(dtype));
            diag_hint(g->diag, dtype_is_narrow(dtype) ? "--precision f32, or choose another target"
                                                      : "cast to a dtype that it has, or choose "
                                                        "another target");
        } else if (!has_op(&asked, g, target, node->op)) {
            good = diag_error(g->diag, node->span, "%s: the target %s has no kernel for it",
                              node->op->name, target->name);
            diag_hint(g->diag, "write it with other ops, or choose another target");
        }
    }
    if (g->data.count && !target->ring) {
        good = diag_error(g->diag, g->data.at[0].span, "the target %s reads no data", target->name);
        diag_hint(g->diag, "leave the statement out, and copy batches to the inputs");
    }
    return good;
}
