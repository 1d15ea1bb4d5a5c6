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
    return program == PROGRAM_STEP || program == PROGRAM_UPDATE || !plan_trains_step(clusters);
}

double plan_extra(double cost, double least)
{
    return cost > least && least > 0 ? 100 * (cost / least - 1) : 0;
}

double cluster_cost(const Graph *g, const Clusters *clusters, const Target *target, Id cluster)
{
    const Profile *p = target->profile ? target->profile : &default_profile;
    const Cluster *c = &clusters->at[cluster];
    double bytes = 0, compute = 0;
    if (g->node.at[clusters->node[c->node]].op->ranks) /* what the link does: communication.c */
        return p->start;
    for (Id k = 0; k < c->nodes; k++) {
        Id node = clusters->node[c->node + k];
        compute += node_flops(g, node) / node_rate(p, g->node.at[node].op);
    }
    for (Id k = 0; k < c->operands; k++)
        bytes += (double)value_bytes(&g->value.at[clusters->operand[c->operand + k]]);
    for (Id k = 0; k < c->results; k++)
        bytes += (double)value_bytes(&g->value.at[clusters->result[c->result + k]]);
    double move = bytes / p->bytes;
    return p->start + (compute > move ? compute : move) / target->threads;
}

double plan_wait(const Graph *g, const Clusters *clusters, const Target *target, Ring ring)
{
    return ring_wait(g, clusters, target, ring) + ranks_wait(g, clusters, target);
}
