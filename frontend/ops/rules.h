/* What the rules of several rows have in common: the kinds of operands they take, lists of axes,
 * and the views that composites are made of. */
#ifndef GPLAN_OPS_RULES_H
#define GPLAN_OPS_RULES_H

#include "frontend/ops/batch.h"

/* Operand i is f32. */
static inline bool want_f32(Graph *g, const Call *c, int i)
{
    if (call_dtype(g, c, i) == F32)
        return true;
    call_error_at(g, c, i, "takes f32, not %s", use_text(g, call_operand(c, i)));
    diag_hint(g->diag, "use cast(x, f32)");
    return false;
}

/* The dims of operand i, for messages: [32, 64]. */
static inline const char *dims_text(Graph *g, const Call *c, int i)
{
    View view = call_view(g, c, i);
    return shape_text(g->arena, DTYPES, view.rank, view.dim);
}

/* Operand i holds indices: i32 or i64. */
static inline bool want_index(Graph *g, const Call *c, int i)
{
    if (call_dtype(g, c, i) == I32 || call_dtype(g, c, i) == I64)
        return true;
    call_error_at(g, c, i, "indices must be i32 or i64, not %s", use_text(g, call_operand(c, i)));
    diag_hint(g->diag, "use cast(x, i32)");
    return false;
}

/* A list of axes, some counted from the end, as bits; an empty list means all of them. */
static inline bool axes_bits(Graph *g, const Call *c, const char *setting, int rank, uint32_t *bits)
{
    const Attr *attr = call_attr(c, setting);
    *bits = attr->count ? 0 : (1u << rank) - 1;
    for (int i = 0; i < attr->count; i++) {
        int64_t axis = attr->list[i];
        if (axis < -rank || axis >= rank)
            return call_error(g, c, "%s = %lld is out of range for a tensor of %d dimension%s",
                              setting, (long long)axis, rank, rank == 1 ? "" : "s");
        uint32_t bit = 1u << (axis < 0 ? axis + rank : axis);
        if (*bits & bit)
            return call_error(g, c, "%s repeats %lld", setting, (long long)axis);
        *bits |= bit;
    }
    return true;
}

static inline double flops_of(const Graph *g, Id node, double each)
{
    View view = use_view(g, node_use(g, &g->node.at[node], 0));
    return each * (double)view_count(&view);
}

/* For composites; a value NONE in, or a failure, gives a value NONE out (shape.c). */

/* The elements of `use` in order under other dims: a view, or a copy where the strides forbid. */
Use use_reshape(Graph *g, const Call *from, Use use, int rank, const int64_t *dim);
/* Axis i of the result is axis perm[i] of `use`. */
Use use_permute(Graph *g, Use use, const int *perm);
/* `length` elements of an axis from `start` on. */
Use use_window(Graph *g, Use use, int axis, int64_t start, int64_t length);

/* 0, 1, 2, ... of i64: the numbers of n elements (generate.c). */
Use use_places(Graph *g, const Call *from, int64_t n);

/* A vector [n] laid along `axis` of a tensor of this rank: [n, 1, 1] for axis 1 of 4, so that it
 * broadcasts over it (shape.c). */
Use use_along(Graph *g, Use vector, int axis, int rank);

#endif
