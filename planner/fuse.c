/* Groups nodes into clusters: chains of elementwise nodes run as one loop, so the values
 * between them take no bytes; every other node is its own cluster, or takes the chain after it as
 * its epilogue (epilogues.c).
 *
 * Requires: a simplified graph. Leaves: clusters in a valid order.
 *
 * A loop runs at the position of its last node. That is right as long as nothing outside reads
 * one of its values before it, and nothing overwrites what it reads, which is what
 * joining a cluster asks for; so clusters cannot form a cycle, and one pass over the nodes is
 * enough. Linear in nodes and operands.
 */
#include "planner/internal.h"

#include <string.h>

enum { MAX_OPERANDS = 12 }; /* they stay in registers */

typedef struct {
    Id parent;   /* of the union; a root is its own */
    Id nodes;    /* in the cluster, for a root */
    Id operands; /* at most so many values from outside */
    bool read;   /* somebody outside has read one of its values */
    Id limit;    /* the node that overwrites something it reads: it comes before that */
} Group;

typedef struct {
    const Graph *g;
    Group *group; /* by node */
} Fusion;

static Id find(Fusion *f, Id node)
{
    while (f->group[node].parent != node) {
        f->group[node].parent = f->group[f->group[node].parent].parent;
        node = f->group[node].parent;
    }
    return node;
}

static bool is_elementwise(const Node *node)
{
    return node->op->flags & OP_ELEMENTWISE && !(node->op->flags & OP_EFFECT);
}

static bool same_dims(const Graph *g, const Node *a, const Node *b)
{
    const Value *m = &g->value.at[a->value], *n = &g->value.at[b->value];
    return m->rank == n->rank && memcmp(m->dim, n->dim, m->rank * sizeof *m->dim) == 0;
}

/* Whether `node` may run in one loop with the producer of its operand. */
static bool fusible(const Fusion *f, const Node *node, Use use)
{
    if (use.value == NONE || use.view != NONE || f->g->value.at[use.value].node == NONE)
        return false;
    const Node *producer = &f->g->node.at[f->g->value.at[use.value].node];
    return is_elementwise(node) && is_elementwise(producer) && same_dims(f->g, node, producer) &&
           producer->program == node->program && producer->phase == node->phase;
}

/* The node reads something of the group in another way too (broadcast, shifted): elements that the
 * loop has not come to yet. */
static bool reads_elsewhere(Fusion *f, const Node *node, Id group)
{
    for (Id i = 0; i < node->uses; i++) {
        Use use = node_use(f->g, node, i);
        Id producer = use.value == NONE ? NONE : f->g->value.at[use.value].node;
        if (producer != NONE && !fusible(f, node, use) && find(f, producer) == group)
            return true;
    }
    return false;
}

static void join(Fusion *f, Id node, Id producer)
{
    Id a = find(f, producer), b = find(f, node);
    if (a == b || f->group[a].read || f->group[a].limit < node ||
        reads_elsewhere(f, &f->g->node.at[node], a) ||
        f->group[a].nodes + f->group[b].nodes > FUSE_MAX_NODES ||
        f->group[a].operands + f->group[b].operands > MAX_OPERANDS)
        return;
    f->group[b].nodes += f->group[a].nodes;
    f->group[b].operands += f->group[a].operands - 1; /* what joins them comes from inside */
    if (f->group[a].limit < f->group[b].limit)
        f->group[b].limit = f->group[a].limit;
    f->group[a].parent = b;
}

static Id operand_count(const Graph *g, const Node *node)
{
    Id count = 0;
    for (Id i = 0; i < node->uses; i++) {
        Id value = node_use(g, node, i).value;
        count += value != NONE && g->value.at[value].kind != VALUE_LITERAL;
    }
    return count;
}

/* By value: the node that makes its next version, in its bytes; NONE: no node. */
static Id *find_updates(Arena *arena, const Graph *g)
{
    Id *update = ARENA_ARRAY(arena, Id, g->value.count);
    memset(update, 0xff, g->value.count * sizeof *update);
    for (Id v = 0; v < g->value.count; v++)
        if (value_is_version(g, v))
            update[g->value.at[v].previous] = g->value.at[v].node;
    return update;
}

Id fuse_limit(const Graph *g, const Node *node, const Id *update)
{
    Id limit = NONE;
    for (Id i = 0; i < node->uses; i++) {
        Id value = node_use(g, node, i).value;
        Id by = value == NONE ? NONE : update[value];
        if (by != NONE && g->node.at[by].program == node->program && by < limit)
            limit = by;
    }
    return limit;
}

static Fusion group_nodes(Arena *arena, const Graph *g, const Id *update)
{
    Fusion f = {g, ARENA_ARRAY(arena, Group, g->node.count)};
    for (Id n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        f.group[n] = (Group){.parent = n,
                             .nodes = 1,
                             .operands = operand_count(g, node),
                             .limit = fuse_limit(g, node, update)};
        for (Id i = 0; i < node->uses; i++)
            if (fusible(&f, node, node_use(g, node, i)))
                join(&f, n, g->value.at[node_use(g, node, i).value].node);
        for (Id i = 0; i < node->uses; i++) {
            Id value = node_use(g, node, i).value;
            Id producer = value == NONE ? NONE : g->value.at[value].node;
            if (producer != NONE && find(&f, producer) != find(&f, n))
                f.group[find(&f, producer)].read = true;
        }
    }
    return f;
}

/* ---- From groups to the table of clusters --------------------------------------------------- */

/* By node: the last node of its group, where that runs. */
static Id *name_groups(Arena *arena, Fusion *f)
{
    const Graph *g = f->g;
    Id *last = ARENA_ARRAY(arena, Id, g->node.count);
    Id *home = ARENA_ARRAY(arena, Id, g->node.count);
    for (Id n = 0; n < g->node.count; n++)
        last[find(f, n)] = n;
    for (Id n = 0; n < g->node.count; n++)
        home[n] = last[find(f, n)];
    return home;
}

/* A product comes before its epilogue, though parts of that may have come first. */
static void add_node(const Graph *g, Clusters *c, Cluster *cluster, Id n)
{
    Id *at = &c->node[cluster->node], place = cluster->nodes++;
    for (; !(g->node.at[n].op->flags & OP_ELEMENTWISE) && place > 0; place--)
        at[place] = at[place - 1];
    at[place] = n;
}

/* Fills cluster numbers by the place where they run, and nodes cluster by cluster. */
static void number_clusters(const Graph *g, const Id *home, Clusters *c)
{
    for (Id n = 0; n < g->node.count; n++)
        if (home[n] == n) {
            c->at[c->count] = (Cluster){.program = g->node.at[n].program};
            c->of[n] = c->count++;
        }
    for (Id n = 0; n < g->node.count; n++) {
        c->of[n] = c->of[home[n]];
        c->at[c->of[n]].nodes++;
    }
    Id next = 0;
    for (Id i = 0; i < c->count; i++) {
        c->at[i].node = next;
        next += c->at[i].nodes;
        c->at[i].nodes = 0;
    }
    for (Id n = 0; n < g->node.count; n++)
        add_node(g, c, &c->at[c->of[n]], n);
}

static void list_operands(Arena *arena, const Graph *g, Clusters *c)
{
    Id *seen = ARENA_ARRAY(arena, Id, g->value.count); /* cluster + 1 that listed the value */
    Id next = 0;
    for (Id i = 0; i < c->count; i++) {
        Cluster *cluster = &c->at[i];
        cluster->operand = next;
        for (Id k = 0; k < cluster->nodes; k++) {
            const Node *node = &g->node.at[c->node[cluster->node + k]];
            for (Id u = 0; u < node->uses; u++) {
                Id value = node_use(g, node, u).value;
                if (value == NONE || g->value.at[value].kind == VALUE_LITERAL ||
                    seen[value] == i + 1)
                    continue;
                if (g->value.at[value].node != NONE && c->of[g->value.at[value].node] == i)
                    continue;
                seen[value] = i + 1;
                c->operand[next++] = value;
            }
        }
        cluster->operands = next - cluster->operand;
    }
}

/* Values that another cluster or an output reads, and new versions; the rest are not stored. */
static void list_results(Arena *arena, const Graph *g, Clusters *c)
{
    bool *read = ARENA_ARRAY(arena, bool, g->value.count);
    for (Id i = 0; i < c->count; i++)
        for (Id k = 0; k < c->at[i].operands; k++)
            read[c->operand[c->at[i].operand + k]] = true;
    for (size_t i = 0; i < g->output.count; i++)
        read[g->output.at[i].use.value] = true;
    Id next = 0;
    for (Id i = 0; i < c->count; i++) {
        Cluster *cluster = &c->at[i];
        cluster->result = next;
        for (Id k = 0; k < cluster->nodes; k++) {
            const Node *node = &g->node.at[c->node[cluster->node + k]];
            for (Id v = 0; v < node->values; v++)
                if (read[node_value(node, v)] || value_is_version(g, node_value(node, v)))
                    c->result[next++] = node_value(node, v);
        }
        cluster->results = next - cluster->result;
    }
}

Clusters *fuse(Arena *arena, const Graph *g, bool epilogues)
{
    Arena *scratch = arena_new();
    const Id *update = find_updates(scratch, g);
    Fusion f = group_nodes(scratch, g, update);
    Id *home = name_groups(scratch, &f);
    if (epilogues)
        fuse_epilogues(scratch, g, update, home);
    Clusters *c = ARENA_NEW(arena, Clusters);
    c->at = ARENA_ARRAY(arena, Cluster, g->node.count);
    c->node = ARENA_ARRAY(arena, Id, g->node.count);
    c->of = ARENA_ARRAY(arena, Id, g->node.count);
    c->operand = ARENA_ARRAY(arena, Id, g->use.count);
    c->result = ARENA_ARRAY(arena, Id, g->value.count);
    number_clusters(g, home, c);
    list_operands(scratch, g, c);
    list_results(scratch, g, c);
    arena_free(scratch);
    return c;
}

void clusters_dump(const Graph *g, const Clusters *clusters, FILE *to)
{
    for (Id i = 0; i < clusters->count; i++) {
        const Cluster *c = &clusters->at[i];
        fprintf(to, "cluster %u:", i);
        for (Id k = 0; k < c->nodes; k++)
            fprintf(to, " %s", g->node.at[clusters->node[c->node + k]].op->name);
        fprintf(to, " (");
        for (Id k = 0; k < c->operands; k++)
            fprintf(to, "%s%%%u", k ? ", " : "", clusters->operand[c->operand + k]);
        fprintf(to, ") ->");
        for (Id k = 0; k < c->results; k++)
            fprintf(to, " %%%u", clusters->result[c->result + k]);
        fprintf(to, "  # %s\n", g->node.at[clusters->node[c->node + c->nodes - 1]].name);
    }
}
