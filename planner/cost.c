/* What a run of a cluster takes: a roofline over its arithmetic and the bytes it moves.
 *
 * The constants are those of one core of a server of the early 2020s with wide vectors; only their
 * ratio matters to a plan. Arithmetic of fused loops runs well below that of products.
 */
#include "planner/internal.h"

static const double FLOPS = 60e9;     /* a second, in products */
static const double LOOP_FLOPS = 8e9; /* elementwise, functions counted as one */
static const double BYTES = 10e9;     /* a second, read and written */
static const double START = 1e-6;     /* seconds for any op at all */

static double node_flops(const Graph *g, Id node)
{
    const Node *n = &g->node.at[node];
    return n->op->flops ? n->op->flops(g, node) : (double)value_count(&g->value.at[n->value]);
}

double cluster_cost(const Graph *g, const Clusters *clusters, const Target *target, Id cluster)
{
    const Cluster *c = &clusters->at[cluster];
    double bytes = 0, flops = 0, rate = c->nodes > 1 ? LOOP_FLOPS : FLOPS;
    for (Id k = 0; k < c->nodes; k++) {
        Id node = clusters->node[c->node + k];
        flops += node_flops(g, node);
        if (g->node.at[node].op->flags & OP_ELEMENTWISE)
            rate = LOOP_FLOPS;
    }
    for (Id k = 0; k < c->operands; k++)
        bytes += (double)value_bytes(&g->value.at[clusters->operand[c->operand + k]]);
    for (Id k = 0; k < c->results; k++)
        bytes += (double)value_bytes(&g->value.at[clusters->result[c->result + k]]);
    double compute = flops / (rate * target->threads), move = bytes / BYTES;
    return START + (compute > move ? compute : move);
}
