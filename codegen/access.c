/* Where the operands of an occurrence lie: a view of a value, seen through the buffer's layout.
 */
#include "codegen/internal.h"

#include <assert.h>
#include <string.h>

/* A buffer with gaps is read whole: planner/check.c verifies it. */
View access_view(const Plan *plan, Use use, Id buffer)
{
    const View *layout = &plan->buffer[buffer].layout;
    if (use.view == NONE)
        return *layout;
    assert(view_is_dense(layout));
    View view = use_view(plan->graph, use);
    view.offset += layout->offset;
    return view;
}

Address access_address(const Api *api, Id buffer, const View *view)
{
    const Plan *plan = api->plan;
    const Buffer *b = &plan->buffer[buffer];
    uint64_t bytes = 0, micro_stride = 0;
    bool ring = false;
    if (b->value != NONE) {
        const Value *value = &plan->graph->value.at[b->value];
        bytes = (uint64_t)view->offset * dtype_size((Dtype)value->dtype);
        micro_stride = value->whole == NONE ? 0 : value_bytes(value);
        ring = value->fed;
        if (ring) /* what is staged does not move */
            micro_stride = api->options->target->stages
                               ? 0
                               : plan->buffer[plan->slots].bytes / plan->ring.depth;
    }
    if (b->space != SPACE_ARENA)
        return (Address){.kind = AT_EXTERNAL,
                         .slot = api->slot[b->root],
                         .offset = bytes,
                         .micro_stride = micro_stride,
                         .value = b->value};
    return (Address){.kind = AT_ARENA,
                     .slot = NONE,
                     .offset = b->offset + bytes,
                     .micro_stride = micro_stride,
                     .ring = ring,
                     .value = b->value};
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
    Id all = node_collects(g, node);
    if (all != NONE)
        return g->value.at[node_use(g, node, 1).value].whole == all;
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

bool access_is_part(const Plan *plan, const Occurrence *o)
{
    const Graph *g = plan->graph;
    const Cluster *c = &plan->clusters->at[o->cluster];
    for (Id k = 0; k < c->results; k++) {
        Id value = plan->buffer[plan->arg[o->arg + c->operands + k]].value;
        if (g->value.at[value_first(g, value)].kind == VALUE_OUTPUT)
            return true;
    }
    return false;
}
