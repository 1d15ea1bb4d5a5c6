/* What ranks do together: the same on all of them, in one order, and complete.
 *
 * Every rank runs the same plan, so it is enough that the plan has one order of what goes over the
 * link: each such op reads the engine's state as the one before it left it, and what began first
 * ends first. Gathers of rows, which wait at once, have an order of their own. What is under way is
 * read by nobody else. A rank that has a shard of a sum reads no more than that; one that updates a
 * shard gets the others. Linear in nodes and operands.
 */
#include "planner/check_parts.h"

typedef struct {
    Arena *arena;
    const Graph *g;
    Id *begun; /* nodes, in order; those before `ended` have ended */
    Id count, ended;
    Id engine;        /* the version of its state that the program has come to; NONE: none yet */
    Id gathered;      /* likewise of gathers of rows */
    bool *flying;     /* by value: a message may read or write it */
    int64_t *partial; /* by value: only this rank's shard of it, of so many numbers, is the sum */
    int64_t *updated; /* by value: likewise, is new */
} RanksCheck;

static Id operand(const RanksCheck *c, const Node *node, Id i)
{
    return i < node->uses ? node_use(c->g, node, i).value : NONE;
}

static int64_t partial(const RanksCheck *c, Id value)
{
    const int64_t of = c->partial[value];
    return of ? of : c->partial[check_first(c->g, value)];
}

static int64_t count_of(const RanksCheck *c, Id value)
{
    return value == NONE ? 0 : value_count(&c->g->value.at[value]);
}

/* An optimizer updates as many numbers of its parameter as it has state for, or a gradient; 0: all
 * of them. */
static int64_t shard_updated(const RanksCheck *c, const Node *node)
{
    const Id state = operand(c, node, 3);
    const int64_t count = count_of(c, state != NONE ? state : operand(c, node, 1));
    const bool some = node->op->flags & OP_OPTIMIZER && count < count_of(c, operand(c, node, 0));
    return some ? count : 0;
}

static const char *check_order(RanksCheck *c, const Node *node, Id *last)
{
    const Id before = operand(c, node, node->uses - 1);
    const Id after = node->values ? node_value(node, node->values - 1) : NONE;
    if (before == NONE || after == NONE || c->g->value.at[after].previous != before)
        return arena_printf(c->arena, "%s has no place in the order of ranks", node->name);
    if (*last != NONE ? before != *last : check_first(c->g, before) != before)
        return arena_printf(c->arena, "%s does not follow what ranks did before", node->name);
    *last = after;
    return NULL;
}

static const char *check_begin(RanksCheck *c, Id id, const Node *node)
{
    for (Id i = 0; i + 1 < node->values; i++)
        c->flying[node_value(node, i)] = true;
    c->begun[c->count++] = id;
    return NULL;
}

static const char *check_end(RanksCheck *c, const Node *node)
{
    if (c->ended == c->count)
        return arena_printf(c->arena, "%s ends what did not begin", node->name);
    const Id id = c->begun[c->ended++];
    const Node *begin = &c->g->node.at[id];
    for (Id i = 0; i + 1 < begin->values; i++)
        if (operand(c, node, i) != node_value(begin, i))
            return arena_printf(c->arena, "%s ends something else than %s began", node->name,
                                begin->name);
    const Id sum = node_value(node, 0), of = operand(c, begin, 0);
    const bool whole = ranks_does(c->g, id, true) & RANKS_WHOLE;
    const int64_t part = (int64_t)node_attr(c->g, id, "part")->number;
    if (!whole)
        c->partial[sum] = c->partial[check_first(c->g, sum)] = part;
    if (whole && c->updated[of] == part)
        c->updated[of] = 0;
    return NULL;
}

/* What reads a shard of a sum, or what is under way. */
static const char *check_reads(RanksCheck *c, const Node *node)
{
    const OpRow *op = node->op;
    const int64_t shard = shard_updated(c, node);
    for (Id i = 0; i < node->uses; i++) {
        const Id value = operand(c, node, i);
        if (value == NONE)
            continue;
        if (c->flying[value] && !(op->ranks & (RANKS_BEGINS | RANKS_END)))
            return arena_printf(c->arena, "%s reads what is under way to other ranks", node->name);
        const int64_t part = partial(c, value);
        if (!part || op->flags & OP_HOST || part == shard)
            continue;
        if (!(op->flags & OP_ELEMENTWISE))
            return arena_printf(c->arena, "%s reads more of a sum than this rank's shard",
                                node->name);
        c->partial[node->value] = part;
    }
    if (shard)
        c->updated[node_value(node, 0)] = shard;
    return NULL;
}

static const char *check_node(RanksCheck *c, Id id)
{
    const Node *node = &c->g->node.at[id];
    const char *fault = check_reads(c, node);
    if (fault || !node->op->ranks)
        return fault;
    if (node->op->ranks & RANKS_ROWS)
        return check_order(c, node, &c->gathered);
    fault = check_order(c, node, &c->engine);
    if (fault)
        return fault;
    return node->op->ranks & RANKS_END ? check_end(c, node) : check_begin(c, id, node);
}

static const char *check_program(RanksCheck *c, int program)
{
    const char *fault = NULL;
    c->count = c->ended = 0;
    c->engine = c->gathered = NONE;
    for (Id n = 0; n < c->g->node.count && !fault; n++)
        if (c->g->node.at[n].program == program)
            fault = check_node(c, n);
    if (!fault && c->ended < c->count)
        fault = arena_printf(c->arena, "%s begins and never ends",
                             c->g->node.at[c->begun[c->ended]].name);
    for (Id v = 0; v < c->g->value.count && !fault; v++)
        if (c->updated[v])
            fault = arena_printf(c->arena, "%s is updated by shards that nobody gathers",
                                 c->g->value.at[check_first(c->g, v)].name);
    return fault;
}

const char *check_ranks(Arena *arena, const Graph *g)
{
    RanksCheck c = {.arena = arena,
                    .g = g,
                    .begun = ARENA_ARRAY(arena, Id, g->node.count + 1),
                    .partial = ARENA_ARRAY(arena, int64_t, g->value.count + 1),
                    .flying = ARENA_ARRAY(arena, bool, g->value.count + 1),
                    .updated = ARENA_ARRAY(arena, int64_t, g->value.count + 1)};
    const char *fault = NULL;
    for (int p = 0; p < PROGRAMS && !fault; p++)
        fault = check_program(&c, p);
    return fault;
}
