/* Where the operands of an occurrence lie: a view of a value, seen through the buffer's layout.
 */
#include "codegen/internal.h"

#include <assert.h>
#include <string.h>

/* A stretch of the value's axes that the layout holds without gaps. */
typedef struct {
    int64_t dim;    /* elements along it */
    int64_t dense;  /* stride in the value as it would lie without gaps */
    int64_t stride; /* in the buffer */
} Stretch;

static int find_stretches(const View *layout, Stretch *stretch)
{
    int count = 0;
    int64_t dense = 1;
    for (int i = layout->rank; i-- > 0; dense *= layout->dim[i]) {
        if (layout->dim[i] == 1)
            continue;
        Stretch *last = count ? &stretch[count - 1] : NULL;
        if (last && layout->stride[i] == last->stride * last->dim)
            last->dim *= layout->dim[i];
        else
            stretch[count++] = (Stretch){layout->dim[i], dense, layout->stride[i]};
    }
    return count;
}

/* The planner lets a value lie with gaps only where each axis of each view of it stays within
 * one stretch. */
static int64_t step(const Stretch *stretch, int count, int64_t view_stride, int64_t dim)
{
    for (int k = count; k-- > 0;)
        if (view_stride % stretch[k].dense == 0 && view_stride / stretch[k].dense != 0) {
            assert(view_stride / stretch[k].dense * (dim - 1) < stretch[k].dim);
            return view_stride / stretch[k].dense * stretch[k].stride;
        }
    assert(!"a view that crosses a gap");
    return 0;
}

View access_view(const Plan *plan, Use use, Id buffer)
{
    const View *layout = &plan->buffer[buffer].layout;
    View view = use_view(plan->graph, use);
    if (use.view == NONE || view_is_dense(layout)) {
        View out = use.view == NONE ? *layout : view;
        out.offset = layout->offset + (use.view == NONE ? 0 : view.offset);
        return out;
    }
    Stretch stretch[MAX_RANK];
    int count = find_stretches(layout, stretch);
    View out = view;
    out.offset = layout->offset;
    for (int k = 0; k < count; k++)
        out.offset += view.offset / stretch[k].dense % stretch[k].dim * stretch[k].stride;
    for (int i = 0; i < view.rank; i++)
        out.stride[i] = view.dim[i] == 1 || view.stride[i] == 0
                            ? 0
                            : step(stretch, count, view.stride[i], view.dim[i]);
    return out;
}

Address access_address(const Api *api, Id buffer, const View *view)
{
    const Plan *plan = api->plan;
    const Buffer *b = &plan->buffer[buffer];
    uint64_t bytes = 0, turn = 0;
    if (b->value != NONE) {
        const Value *value = &plan->graph->value.at[b->value];
        bytes = (uint64_t)view->offset * dtype_size((Dtype)value->dtype);
        turn = value->whole == NONE ? 0 : value_bytes(value);
    }
    if (b->external)
        return (Address){AT_EXTERNAL, api->slot[b->root], bytes, turn};
    return (Address){AT_ARENA, NONE, b->offset + bytes, turn};
}

Id access_buffer(const Plan *plan, const Occurrence *o, Id value, Id i)
{
    const Cluster *c = &plan->clusters->at[o->cluster];
    for (Id k = 0, at = i < c->operands ? i : 0; k < c->operands; k++) {
        if (plan->clusters->operand[c->operand + at] == value)
            return plan->arg[o->arg + at];
        at = (at ? at : c->operands) - 1;
    }
    for (Id k = 0; k < c->results; k++)
        if (plan->clusters->result[c->result + k] == value)
            return plan->arg[o->arg + c->operands + k];
    return NONE;
}

bool access_is_done(const Plan *plan, const Occurrence *o)
{
    const Graph *g = plan->graph;
    const Cluster *c = &plan->clusters->at[o->cluster];
    Id id = plan->clusters->node[c->node];
    const Node *node = &g->node.at[id];
    if (c->nodes != 1 || !(node->op->flags & OP_JOINS) || c->results == 0)
        return false;
    const Buffer *result = &plan->buffer[access_buffer(plan, o, node->value, 0)];
    int axis = (int)node_attr(g, id, "axis")->list[0];
    int64_t begin = 0;
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(g, node, i);
        const Buffer *b = &plan->buffer[access_buffer(plan, o, use.value, i)];
        View view = use_view(g, use);
        if (use.view != NONE || b->root != result->root ||
            b->layout.offset != result->layout.offset + begin * result->layout.stride[axis] ||
            memcmp(b->layout.stride, result->layout.stride, sizeof(int64_t) * view.rank) != 0)
            return false;
        begin += view.dim[axis];
    }
    return true;
}
