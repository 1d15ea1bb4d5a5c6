/* One step of the replay: its arguments are the buffers that they should be, operands are there and
 * stay readable while results are written, and kernels get no gaps that they do not take. */
#include "planner/check_replay.h"

const Node *step_kernel(const Check *c, const Cluster *cluster)
{
    const Node *first = &c->g->node.at[c->plan->clusters->node[cluster->node]];
    return cluster->nodes > 1 && !(first->op->flags & OP_ELEMENTWISE) ? first : NULL;
}

/* The row lets result 0 of the cluster take the bytes of this operand. */
static bool may_take(const Check *c, const Cluster *cluster, Id operand)
{
    if (step_kernel(c, cluster))
        return false; /* sums lie in the result before the epilogue reads its operands */
    for (Id k = 0; k < cluster->nodes; k++) {
        const Node *node = &c->g->node.at[c->plan->clusters->node[cluster->node + k]];
        Id reads = 0;
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(c->g, node, u);
            if (use.value != operand)
                continue;
            reads++;
            if (use.view != NONE)
                return false;
            if (!(node->op->flags & OP_ELEMENTWISE) &&
                (u >= 32 || !(node->op->inplace >> u & 1) || reads > 1))
                return false;
        }
    }
    return true;
}

/* After a kernel, what is written over is read by the last node alone, element by element: sums
 * stay aside until then. */
static bool reads_with_last(const Check *c, const Cluster *cluster, Id operand)
{
    bool alone = true;
    for (Id k = 0; k < cluster->nodes && step_kernel(c, cluster); k++) {
        const Node *node = &c->g->node.at[c->plan->clusters->node[cluster->node + k]];
        for (Id u = 0; u < node->uses; u++) {
            Use use = node_use(c->g, node, u);
            alone &= use.value != operand || (k + 1 == cluster->nodes && use.view == NONE);
        }
    }
    return alone;
}

/* The buffer that holds a value in the current occurrence. */
static Id argument(const Check *c, Id value, uint32_t time)
{
    if (value == NONE || c->argument[value].time != time + 1)
        return NONE; /* a literal, or within the loop, or unread */
    return c->argument[value].buffer;
}

static bool has_strides_of(const View *window, const View *result)
{
    for (int k = 0; k < window->rank; k++)
        if (window->dim[k] != 1 && window->stride[k] != result->stride[k])
            return false;
    return window->rank == result->rank;
}

/* Notes the operands that lie in their own place in the result: of a concat, or what is collected.
 */
static void find_windowed(Check *c, const Occurrence *o, uint32_t time)
{
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    const Id first = c->plan->clusters->node[cluster->node];
    const Node *node = &c->g->node.at[first];
    const Id all = node_collects(c->g, node);
    const Id part = all == NONE ? NONE : node_use(c->g, node, 1).value;
    if (part != NONE && c->g->value.at[part].whole == all)
        c->windowed[argument(c, part, time)] = time + 1;
    if (!(node->op->flags & OP_JOINS) || cluster->results == 0)
        return;
    const Id result = c->plan->arg[o->arg + cluster->operands];
    const View *out = &c->plan->buffer[result].layout;
    const int axis = (int)node_attr(c->g, first, "axis")->list[0];
    int64_t begin = 0;
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(c->g, node, i);
        Id buffer = argument(c, use.value, time);
        const View *in = buffer == NONE ? NULL : &c->plan->buffer[buffer].layout;
        if (in && use.view == NONE && c->extents.base[buffer] == c->extents.base[result] &&
            in->offset == out->offset + begin * out->stride[axis] && has_strides_of(in, out))
            c->windowed[buffer] = time + 1;
        begin += use_view(c->g, use).dim[axis];
    }
}

/* Operands stay readable while results are written: each pair is apart, or allowed to meet. */
static bool check_pairs(Check *c, const Occurrence *o, uint32_t time, Id *keep, Id *keeps)
{
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    const Id *in = &c->plan->arg[o->arg], *out = in + cluster->operands;
    find_windowed(c, o, time);
    for (Id i = 0; i < cluster->operands; i++) {
        if (o->workspace != NONE && extents_overlap(&c->extents, in[i], o->workspace))
            return check_fail(c, "step %u: workspace overlaps its operand %s", time,
                              check_name(c, in[i]));
        for (Id k = 0; k < cluster->results; k++) {
            if (!extents_overlap(&c->extents, in[i], out[k]))
                continue;
            const Value *made = &c->g->value.at[c->plan->buffer[out[k]].value];
            if (made->previous == c->plan->buffer[in[i]].value &&
                extents_same(&c->extents, in[i], out[k]) &&
                reads_with_last(c, cluster, c->plan->buffer[in[i]].value))
                continue;
            if (c->windowed[in[i]] == time + 1)
                keep[(*keeps)++] = in[i];
            else if (!extents_same(&c->extents, in[i], out[k]) || made->output != 0 ||
                     !may_take(c, cluster, c->plan->buffer[in[i]].value))
                return check_fail(c, "step %u: the output %s overlaps the operand %s", time,
                                  check_name(c, out[k]), check_name(c, in[i]));
        }
    }
    for (Id k = 0; k < cluster->results; k++) {
        if (o->workspace != NONE && extents_overlap(&c->extents, out[k], o->workspace))
            return check_fail(c, "step %u: workspace overlaps its output %s", time,
                              check_name(c, out[k]));
        for (Id m = 0; m < k; m++)
            if (extents_overlap(&c->extents, out[k], out[m]))
                return check_fail(c, "step %u: the outputs %s and %s overlap", time,
                                  check_name(c, out[k]), check_name(c, out[m]));
    }
    return true;
}

static bool check_args(Check *c, const Occurrence *o, uint32_t time)
{
    const Clusters *clusters = c->plan->clusters;
    const Cluster *cluster = &clusters->at[o->cluster];
    uint64_t needed = c->target->workspace(c->target, c->g, clusters, o->cluster);
    if (needed && (o->workspace == NONE || o->workspace >= c->plan->buffers ||
                   c->plan->buffer[o->workspace].bytes < needed))
        return check_fail(c, "step %u has less workspace than the %llu bytes it needs", time,
                          (unsigned long long)needed);
    for (Id k = 0; k < cluster->operands + cluster->results; k++) {
        Id buffer = c->plan->arg[o->arg + k];
        Id value = k < cluster->operands
                       ? clusters->operand[cluster->operand + k]
                       : clusters->result[cluster->result + k - cluster->operands];
        if (buffer >= c->plan->buffers || c->plan->buffer[buffer].value != value)
            return check_fail(c, "step %u: argument %u is not a buffer of %s", time, k,
                              c->g->value.at[value].name);
        c->argument[value] = (Argument){buffer, time + 1};
    }
    return true;
}

static bool has_gaps(const Check *c, Id buffer)
{
    return buffer != NONE && !view_is_dense(&c->plan->buffer[buffer].layout);
}

/* A buffer with gaps is read whole, and only by kernels that take strides; writing likewise. */
static bool check_gaps(Check *c, const Occurrence *o, uint32_t time)
{
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    for (Id k = 0; k < cluster->nodes; k++) {
        const Node *node = &c->g->node.at[c->plan->clusters->node[cluster->node + k]];
        bool loop = node->op->flags & OP_ELEMENTWISE;
        for (Id i = 0; i < node->uses; i++) {
            Use use = node_use(c->g, node, i);
            const Id buffer = argument(c, use.value, time);
            if (has_gaps(c, buffer) &&
                (use.view != NONE || !op_takes_view(node->op, i, &c->plan->buffer[buffer].layout)))
                return check_fail(c, "step %u: %s needs operand %u contiguous", time, node->name,
                                  i);
        }
        for (Id i = 0; i < node->values; i++)
            if (has_gaps(c, argument(c, node_value(node, i), time)) && !loop &&
                !(node->op->out_strided >> i & 1))
                return check_fail(c, "step %u: %s needs output %u contiguous", time, node->name, i);
    }
    const Node *kernel = step_kernel(c, cluster);
    if (kernel && !(kernel->op->out_strided & 1) &&
        has_gaps(c, c->plan->arg[o->arg + cluster->operands]))
        return check_fail(c, "step %u: %s needs the output of its epilogue contiguous", time,
                          kernel->name);
    return true;
}

bool step_replay(Check *c, const Occurrence *o, uint32_t time)
{
    if (o->cluster >= c->plan->clusters->count)
        return check_fail(c, "step %u runs a cluster that does not exist", time);
    const Cluster *cluster = &c->plan->clusters->at[o->cluster];
    if (!check_args(c, o, time) || !check_gaps(c, o, time))
        return false;
    const Id *arg = &c->plan->arg[o->arg];
    for (Id k = 0; k < cluster->operands; k++)
        if (!memory_holds(c, arg[k], time))
            return check_fail(c, "step %u reads %s from bytes that hold something else", time,
                              check_name(c, arg[k]));
    Id *keep = ARENA_ARRAY(c->arena, Id, cluster->operands * cluster->results + 1), keeps = 0;
    if (!check_pairs(c, o, time, keep, &keeps))
        return false;
    for (Id k = 0; k < keeps; k++)
        c->content.at[c->latest[keep[k]]].spared = time;
    if (o->workspace != NONE && !memory_cover(c, o->workspace, time, false))
        return false;
    for (Id k = cluster->operands; k < cluster->operands + cluster->results; k++)
        if (!memory_cover(c, arg[k], time, keeps > 0))
            return false;
    for (Id k = cluster->operands; k < cluster->operands + cluster->results; k++) {
        Id value = c->plan->buffer[arg[k]].value;
        memory_put(c, arg[k], time, check_is_persistent(c->g, value));
    }
    for (Id k = 0; k < keeps; k++) {
        Content *content = &c->content.at[c->latest[keep[k]]];
        content->absorbed = time;
        content->around = c->latest[arg[cluster->operands]];
    }
    return true;
}
