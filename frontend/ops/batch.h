/* How the batch passes through an op, for the rows: see BatchRule. A rule is asked about an axis
 * that the shape rule has made as long in every operand that has it, so what it says of one
 * operand it need not say of the others. Where in doubt, samples are mixed: that is always safe. */
#ifndef GPLAN_OPS_BATCH_H
#define GPLAN_OPS_BATCH_H

#include "frontend/frontend.h"

/* Each element separately, along any axis. */
static inline int batch_each(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)operand, (void)output;
    return axis;
}

/* Nothing here is of a sample: parameters, and what was summed over all of them. */
static inline int batch_never(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)operand, (void)axis, (void)output;
    return BATCH_MIXED;
}

/* Axis 0 of every operand and result. */
static inline int batch_first(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)operand, (void)output;
    return axis == 0 ? 0 : BATCH_MIXED;
}

/* Each image and each of its channels separately: axes 0 and 1. */
static inline int batch_planes(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)g, (void)n, (void)operand, (void)output;
    return axis < 2 ? axis : BATCH_MIXED;
}

/* Rows along the last axis of operand 0; the others have something for each row. */
static inline int batch_rows(const Graph *g, const Node *n, int operand, int axis, int output)
{
    (void)operand, (void)output;
    return axis < use_view(g, node_use(g, n, 0)).rank - 1 ? axis : BATCH_MIXED;
}

/* Every axis but the one that the setting names. */
static inline int batch_beside(const Graph *g, const Node *n, const char *setting, int axis)
{
    return axis == g->attr.at[n->attr + (Id)op_arg(n->op, setting)].list[0] ? BATCH_MIXED : axis;
}

#endif
