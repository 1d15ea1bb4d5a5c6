/* What a run of a cluster takes: a roofline over its arithmetic and the bytes it moves.
 *
 * The default constants are those of one core of a server of the early 2020s with wide vectors;
 * only their ratio matters to a plan. Arithmetic of fused loops runs well below that of products.
 * Threads are taken to share arithmetic and bandwidth alike, so that their number does not change
 * which of two plans is the cheaper one. Between ranks they are a network of 100 Gbit/s whose cards
 * move the bytes.
 */
#include "planner/internal.h"

const Profile default_profile = {.product_flops = 60e9,
                                 .conv_flops = 60e9,
                                 .loop_flops = 8e9,
                                 .bytes = 10e9,
                                 .start = 1e-6,
                                 .link_bytes = 10e9,
                                 .link_start = 3e-6,
                                 .link_core = 0.1};

static double node_flops(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    return n->op->flops ? n->op->flops(g, node) : (double)value_count(&g->value.at[n->value]);
}

/* Operations a second of a node that runs alone. */
static double node_rate(const Profile *p, const OpRow *op)
{
    if (op->flags & OP_ELEMENTWISE)
        return p->loop_flops;
    return op->rate == RATE_CONVOLUTION ? p->conv_flops : p->product_flops;
}

/* A training step is what is run most and searched for; what evaluates beside it, or computes
 * outputs, would make extra time look small. */
bool plan_trains_step(const Clusters *clusters)
{
    for (Id i = 0; i < clusters->count; i++)
        if (clusters->at[i].program == PROGRAM_STEP)
            return true;
    return false;
}

bool program_counts(const Clusters *clusters, int program)
{
    return program == PROGRAM_STEP || program == PROGRAM_UPDATE ||
           (program != PROGRAM_PREPARE && !plan_trains_step(clusters));
}

double plan_extra(double cost, double least)
{
    return cost > least && least > 0 ? 100 * (cost / least - 1) : 0;
}

/* Bytes of operand i of an optimizer. One that updates a shard counts as one that updates all of
 * the parameter, so that of plans which do the same otherwise none is the cheaper for its shards:
 * then the least that a budget asks for is sharded. */
static double optimizer_bytes(const Graph *g, const Node *node, Id i)
{
    const Value *is = &g->value.at[node_use(g, node, i).value];
    const Value *w = &g->value.at[node_use(g, node, 0).value];
    if (is->all)
        return (double)value_bytes(is) / (double)value_count(is) * (double)view_count(is->all);
    return (double)value_bytes(i == 1 ? w : is);
}

/* Bytes of what an op of ranks is about: parameters, however they are sharded. */
static double ranks_moved(const Graph *g, const Node *node)
{
    double bytes = 0;
    for (Id i = 0; i < node->uses; i++) {
        const Value *value = &g->value.at[node_use(g, node, i).value];
        bytes += value->kind == VALUE_PARAM ? (double)value_bytes(value) : 0;
    }
    return bytes;
}

/* What a cluster reads and writes. */
static double moved_bytes(const Graph *g, const Clusters *clusters, const Cluster *c)
{
    const Node *first = &g->node.at[clusters->node[c->node]];
    double bytes = 0;
    if (first->op->flags & OP_HOST)
        return ranks_moved(g, first);
    for (Id i = 0; i < first->uses && first->op->flags & OP_OPTIMIZER; i++)
        if (node_use(g, first, i).value != NONE)
            bytes += optimizer_bytes(g, first, i) * (i == 1 || i == 2 ? 1 : 2);
    if (first->op->flags & OP_OPTIMIZER)
        return bytes;
    for (Id k = 0; k < c->operands; k++)
        bytes += (double)value_bytes(&g->value.at[clusters->operand[c->operand + k]]);
    for (Id k = 0; k < c->results; k++)
        bytes += (double)value_bytes(&g->value.at[clusters->result[c->result + k]]);
    return bytes;
}

double cluster_cost(const Graph *g, const Clusters *clusters, const Target *target, Id cluster)
{
    const Profile *p = target->profile ? target->profile : &default_profile;
    const Cluster *c = &clusters->at[cluster];
    double compute = 0;
    if (g->node.at[clusters->node[c->node]].op->ranks) /* what the link does: communication.c */
        return p->start;
    for (Id k = 0; k < c->nodes; k++) {
        Id node = clusters->node[c->node + k];
        compute += node_flops(g, node) / node_rate(p, g->node.at[node].op);
    }
    double move = moved_bytes(g, clusters, c) / p->bytes;
    return p->start + (compute > move ? compute : move) / target->threads;
}

double plan_wait(const Graph *g, const Clusters *clusters, const Target *target, Ring ring)
{
    return ring_wait(g, clusters, target, ring) + ranks_wait(g, clusters, target);
}
