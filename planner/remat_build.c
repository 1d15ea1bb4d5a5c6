/* A program of the plan as an abstract graph: what planner/remat/remat.h searches on.
 *
 * Requires: clusters. Leaves: a problem whose nodes are the clusters of the program in the given
 * order, and a schedule of it that keeps the hints. Linear in operands.
 */
#include "planner/internal.h"
#include "planner/rematerialize.h"

#include <string.h>

typedef struct {
    Arena *arena;
    const Graph *g;
    const Clusters *clusters;
    const Target *target;
    const PlanOptions *options;
    const uint64_t *workspace;
    bool relaxed;           /* sizes that no plan can be below, for bounds */
    Id *number;             /* by value: its number in the problem */
    bool *output;           /* by value */
    bool *external;         /* by value: an output whose bytes are the caller's */
    bool *joined;           /* by value: a concat reads it, so it may lie in the result */
    bool *followed;         /* by value: a new version that a later node of the program reads */
    bool *waits;            /* by node: it waits for all that may fail */
    bool waiting;           /* something in the program waits for what may fail */
    ARRAY(RematId) checked; /* values without bytes of nodes that may fail: they have not */
    RematProgram a;
    ARRAY(RematValue) value;
    ARRAY(RematId) read;
    ARRAY(RematInPlace) in_place;
} Build;

/* It has an effect, or leaves what persists. */
static bool runs_once(const Build *b, Id cluster)
{
    const Cluster *c = &b->clusters->at[cluster];
    for (Id k = 0; k < c->results; k++)
        if (b->g->value.at[b->clusters->result[c->result + k]].kind == VALUE_PREPARED)
            return true;
    for (Id k = 0; k < c->nodes; k++)
        if (b->g->node.at[b->clusters->node[c->node + k]].op->flags & OP_EFFECT)
            return true;
    return false;
}

static void mark_values(Build *b)
{
    const Graph *g = b->g;
    for (size_t i = 0; i < g->output.count; i++) {
        Id value = g->output.at[i].use.value;
        b->output[value] = true;
        b->external[value] |= b->options->io_external && !g->output.at[i].loss;
    }
    for (size_t n = 0; n < g->node.count && b->relaxed; n++)
        for (Id i = 0; g->node.at[n].op->flags & OP_JOINS && i < g->node.at[n].uses; i++)
            if (node_use(g, &g->node.at[n], i).value != NONE)
                b->joined[node_use(g, &g->node.at[n], i).value] = true;
    for (size_t n = 0; n < g->node.count; n++)
        for (Id i = 0; i < g->node.at[n].uses; i++) {
            Id value = node_use(g, &g->node.at[n], i).value;
            if (value != NONE && value_is_version(g, value))
                b->followed[value] = true;
        }
}

/* ---- Nodes and values ----------------------------------------------------------------------- */

static void add_value(Build *b, Id value, RematId node, bool pinned)
{
    const Graph *g = b->g;
    const bool persists = g->value.at[value].kind == VALUE_PREPARED;
    uint32_t flags = pinned ? REMAT_PINNED : b->output[value] || persists ? REMAT_OUTPUT : 0;
    int64_t size = (int64_t)round_up(value_bytes(&g->value.at[value]), b->target->align);
    bool elsewhere = pinned || persists || b->external[value] || b->joined[value] ||
                     g->value.at[value].whole != NONE; /* in an output that is there */
    b->number[value] = (Id)b->value.count;
    ARRAY_PUSH(b->arena, &b->value,
               (RematValue){.size = elsewhere ? 0 : size,
                            .node = node,
                            .killer = REMAT_NONE,
                            .drop_at = REMAT_NONE,
                            .flags = flags});
}

/* Which nodes must wait for what may fail: they commit something, and do not follow from all of it
 * anyway. Up to 64 of those are told apart. */
static void find_waiting(Build *b)
{
    uint64_t *from = ARENA_ARRAY(b->arena, uint64_t, b->g->value.count), *needs;
    uint32_t checks = 0;
    b->waits = ARENA_ARRAY(b->arena, bool, b->a.problem.nodes);
    needs = ARENA_ARRAY(b->arena, uint64_t, b->a.problem.nodes);
    for (RematId n = 0; n < b->a.problem.nodes; n++) {
        const Cluster *c = &b->clusters->at[b->a.cluster[n]];
        for (Id k = 0; k < c->operands; k++)
            needs[n] |= from[b->clusters->operand[c->operand + k]];
        if (node_may_fail(&b->g->node.at[b->clusters->node[c->node]]))
            needs[n] |= (uint64_t)1 << (checks++ & 63);
        for (Id k = 0; k < c->results; k++)
            from[b->clusters->result[c->result + k]] = needs[n];
    }
    uint64_t all = checks < 64 ? ((uint64_t)1 << checks) - 1 : UINT64_MAX;
    for (RematId n = 0; n < b->a.problem.nodes; n++) {
        const Cluster *c = &b->clusters->at[b->a.cluster[n]];
        b->waits[n] = checks && (needs[n] != all || checks > 64) &&
                      node_commits(b->g, &b->g->node.at[b->clusters->node[c->node]]);
        b->waiting |= b->waits[n];
    }
}

/* What persists is read too where a later version takes its bytes: not after that. */
static void add_reads(Build *b, RematNode *node, const Cluster *c, bool waits)
{
    node->read = (RematId)b->read.count;
    for (Id k = 0; k < c->operands; k++) {
        Id value = b->clusters->operand[c->operand + k];
        if (b->number[value] == NONE) {
            if (b->g->value.at[value].kind == VALUE_RESULT)
                continue;
            add_value(b, value, REMAT_NONE, true);
        }
        ARRAY_PUSH(b->arena, &b->read, b->number[value]);
    }
    for (size_t i = 0; i < b->checked.count && waits; i++)
        ARRAY_PUSH(b->arena, &b->read, b->checked.at[i]);
    node->reads = (RematId)b->read.count - node->read;
}

/* A value without bytes, for the order alone. */
static void add_token(Build *b, Id value, RematId node)
{
    if (value != NONE)
        b->number[value] = (Id)b->value.count;
    ARRAY_PUSH(b->arena, &b->value,
               (RematValue){.node = node, .killer = REMAT_NONE, .drop_at = REMAT_NONE});
}

static void add_pairs(Build *b, Id cluster, RematId id, Id value)
{
    const Cluster *c = &b->clusters->at[cluster];
    for (Id i = 0; i < c->operands && !b->output[value]; i++) {
        Id operand = b->clusters->operand[c->operand + i];
        if (may_overwrite(b->g, b->clusters, cluster, operand, value) &&
            b->value.at[b->number[value]].size <= b->value.at[b->number[operand]].size)
            ARRAY_PUSH(b->arena, &b->in_place,
                       (RematInPlace){id, b->number[operand], b->number[value]});
    }
}

static void add_results(Build *b, RematNode *node, Id cluster, RematId id)
{
    const Cluster *c = &b->clusters->at[cluster];
    node->value = (RematId)b->value.count;
    for (Id k = 0; k < c->results; k++) {
        Id value = b->clusters->result[c->result + k];
        Id previous = b->g->value.at[value].previous;
        if (previous == NONE) {
            add_value(b, value, id, false);
            add_pairs(b, cluster, id, value);
        } else if (b->number[previous] != NONE) { /* takes the bytes of the old version */
            b->value.at[b->number[previous]].killer = id;
        }
        if (b->followed[value])
            add_token(b, value, id);
    }
    if (b->waiting && node_may_fail(&b->g->node.at[b->clusters->node[c->node]])) {
        ARRAY_PUSH(b->arena, &b->checked, (RematId)b->value.count);
        add_token(b, NONE, id);
    }
    node->values = (RematId)b->value.count - node->value;
}

static void add_nodes(Build *b, uint32_t times)
{
    find_waiting(b);
    for (RematId n = 0; n < b->a.problem.nodes; n++) {
        Id cluster = b->a.cluster[n];
        RematNode *node = &b->a.problem.node[n];
        node->cost = times * cluster_cost(b->g, b->clusters, b->target, cluster);
        node->workspace = (int64_t)round_up(b->workspace[cluster], b->target->align);
        node->flags = runs_once(b, cluster) ? REMAT_ONCE : 0;
        add_reads(b, node, &b->clusters->at[cluster], b->waits[n]);
        add_results(b, node, cluster, n);
    }
}

/* Outputs that micro-batches fill one after the other are there from the first step to the last. */
static int64_t sum_collected(const Build *b, int program)
{
    uint64_t collected = 0;
    for (Id v = 0; v < b->g->value.count && !b->options->io_external; v++)
        if (b->g->value.at[v].kind == VALUE_OUTPUT && b->g->value.at[v].program == program)
            collected += round_up(value_bytes(&b->g->value.at[v]), b->target->align);
    return (int64_t)collected;
}

/* ---- Hints ---------------------------------------------------------------------------------- */

/* By scope: the block around it, or NONE. Depth 0: of those whose inputs alone the model asks to be
 * stored; otherwise of all at that depth. Parents come before their children. */
static Id *find_owners(Arena *arena, const Graph *g, uint32_t depth)
{
    Id *owner = ARENA_ARRAY(arena, Id, g->scope.count);
    uint32_t *deep = ARENA_ARRAY(arena, uint32_t, g->scope.count);
    for (Id s = 0; s < g->scope.count; s++) {
        Id parent = g->scope.at[s].parent;
        deep[s] = parent == NONE ? 0 : deep[parent] + 1;
        owner[s] = parent == NONE ? NONE : owner[parent];
        bool begins = depth ? deep[s] == depth : g->scope.at[s].hint & HINT_CHECKPOINT;
        if (owner[s] == NONE && begins)
            owner[s] = s;
    }
    return owner;
}

/* By value: it is read in the forward pass only within the block that makes it. */
static bool *find_inner(Arena *arena, const Graph *g)
{
    const Id *owner = find_owners(arena, g, 0);
    bool *inner = ARENA_ARRAY(arena, bool, g->value.count);
    for (Id v = 0; v < g->value.count; v++) {
        Id node = g->value.at[v].node;
        inner[v] = node != NONE && owner[g->node.at[node].scope] != NONE;
    }
    for (size_t n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        for (Id i = 0; i < node->uses && node->phase == PHASE_FORWARD; i++) {
            Id value = node_use(g, node, i).value;
            if (value == NONE || !inner[value])
                continue;
            Id made = g->value.at[value].node;
            if (owner[g->node.at[made].scope] != owner[node->scope])
                inner[value] = false;
        }
    }
    return inner;
}

static RematId first_back(const Build *b)
{
    for (RematId n = 0; n < b->a.problem.nodes; n++) {
        const Cluster *c = &b->clusters->at[b->a.cluster[n]];
        if (b->g->node.at[b->clusters->node[c->node]].phase == PHASE_BACKWARD)
            return n;
    }
    return REMAT_NONE;
}

/* A value under `keep` is never recomputed; one under `recompute`, or inside a checkpointed block,
 * is not stored from the first step of the backward pass on. A block's values that only an effect
 * makes can but be stored. */
static void add_hints(Build *b)
{
    const bool *inner = find_inner(b->arena, b->g);
    RematId back = b->a.back;
    for (RematId n = 0; n < b->a.problem.nodes; n++) {
        const Cluster *c = &b->clusters->at[b->a.cluster[n]];
        for (Id k = 0; k < c->results; k++)
            if (b->g->value.at[b->clusters->result[c->result + k]].hint & HINT_KEEP)
                b->a.problem.node[n].flags |= REMAT_ONCE;
        for (Id k = 0; k < c->results; k++) {
            Id value = b->clusters->result[c->result + k];
            bool asked = b->g->value.at[value].hint & HINT_RECOMPUTE;
            bool once = b->a.problem.node[n].flags & REMAT_ONCE;
            if (back == REMAT_NONE || n >= back || b->number[value] == NONE || b->output[value] ||
                !(asked || (inner[value] && !once)))
                continue;
            if (once)
                b->a.broken = value;
            else
                b->value.at[b->number[value]].drop_at = back;
            b->a.hinted = true;
        }
    }
}

/* ---- A schedule that keeps them ------------------------------------------------------------- */

/* The given order; what is dropped before the backward pass is made again where it is first read.
 */
static RematSchedule keep_hints(const Build *b)
{
    const RematProblem *problem = &b->a.problem;
    bool *droppable = ARENA_ARRAY(b->arena, bool, problem->values);
    bool *dropped = ARENA_ARRAY(b->arena, bool, problem->nodes);
    Again again = again_new(problem, b->a.back, b->arena);
    for (RematId v = 0; v < problem->values; v++) {
        droppable[v] = problem->value[v].drop_at != REMAT_NONE;
        if (droppable[v])
            dropped[problem->value[v].node] = true;
    }
    again.droppable = droppable;
    again.dropped = dropped;
    again.ahead = true;
    return again_run(&again);
}

/* By node: the block at the depth that it belongs to, numbered as they begin, or NONE. */
static Id *find_blocks(const Build *b, uint32_t depth)
{
    const Graph *g = b->g;
    const Id *owner = find_owners(b->arena, g, depth);
    Id *number = ARENA_ARRAY(b->arena, Id, g->scope.count), count = 0;
    Id *block = ARENA_ARRAY(b->arena, Id, b->a.problem.nodes);
    memset(number, 0xff, g->scope.count * sizeof *number);
    for (RematId n = 0; n < b->a.problem.nodes; n++) {
        const Cluster *c = &b->clusters->at[b->a.cluster[n]];
        Id at = owner[g->node.at[b->clusters->node[c->node + c->nodes - 1]].scope];
        if (at != NONE && number[at] == NONE)
            number[at] = count++;
        block[n] = at == NONE ? NONE : number[at];
    }
    return block;
}

/* A value that the schedule still stores where it should be made again: one whose hint alone makes
 * it invalid. */
static Id find_broken(const Build *b)
{
    if (remat_evaluate(&b->a.problem, &b->a.start).valid)
        return NONE;
    RematProblem one = b->a.problem;
    RematValue *value = ARENA_ARRAY(b->arena, RematValue, one.values);
    memcpy(value, b->value.at, one.values * sizeof *value);
    for (RematId v = 0; v < one.values; v++)
        value[v].drop_at = REMAT_NONE;
    one.value = value;
    for (Id v = 0; v < b->g->value.count; v++) {
        const Id at = b->number[v];
        if (at == NONE || b->value.at[at].drop_at == REMAT_NONE)
            continue;
        value[at].drop_at = b->value.at[at].drop_at;
        if (!remat_evaluate(&one, &b->a.start).valid)
            return v;
        value[at].drop_at = REMAT_NONE;
    }
    return NONE;
}

RematProgram remat_build(Arena *arena, const Task *task, const Order *order, int program,
                         bool relaxed)
{
    const Graph *g = task->g;
    Build b = {.arena = arena,
               .g = g,
               .clusters = task->clusters,
               .target = task->target,
               .options = task->options,
               .workspace = task->workspace};
    b.relaxed = relaxed;
    b.number = ARENA_ARRAY(arena, Id, g->value.count);
    b.output = ARENA_ARRAY(arena, bool, g->value.count);
    b.external = ARENA_ARRAY(arena, bool, g->value.count);
    b.joined = ARENA_ARRAY(arena, bool, g->value.count);
    b.followed = ARENA_ARRAY(arena, bool, g->value.count);
    memset(b.number, 0xff, g->value.count * sizeof *b.number);
    mark_values(&b);
    b.a.cluster = order->cluster[program];
    b.a.broken = NONE;
    RematProblem *problem = &b.a.problem;
    problem->nodes = order->count[program];
    problem->node = ARENA_ARRAY(arena, RematNode, problem->nodes);
    add_nodes(&b, program_times(g, program));
    b.a.collected = sum_collected(&b, program);
    b.a.back = first_back(&b);
    if (!task->options->no_recompute)
        add_hints(&b);
    problem->value = b.value.at;
    problem->values = (RematId)b.value.count;
    problem->read = b.read.at;
    problem->reads = (RematId)b.read.count;
    problem->in_place = b.in_place.at;
    problem->in_places = (RematId)b.in_place.count;
    b.a.start = b.a.hinted ? keep_hints(&b) : remat_baseline(problem, arena);
    if (b.a.hinted && b.a.broken == NONE)
        b.a.broken = find_broken(&b);
    for (uint32_t depth = 0; depth < BLOCK_DEPTHS && !relaxed && b.a.back != REMAT_NONE; depth++)
        b.a.block[depth] = find_blocks(&b, depth + 1);
    return b.a;
}
