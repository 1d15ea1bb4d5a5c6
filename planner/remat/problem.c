/* Checking a problem, and replaying a schedule from the definition in remat.h. */
#include "frontend/base/arena.h"
#include "planner/remat/remat.h"

#include <string.h>

/* ---- is it a problem? ---- */

static const int64_t LARGEST_SUM = (int64_t)1 << 58; /* of all sizes, so that no sum overflows */
enum { MOST_NODES = 1 << 24, MOST_PAIRS = 64 };

static const char *value_error(const RematProblem *problem, RematId v, int64_t *sum)
{
    const RematValue *value = &problem->value[v];
    if (value->size < 0)
        return "a size is negative";
    if (value->size > LARGEST_SUM - *sum)
        return "the sizes are too large";
    *sum += value->size;
    if (value->node == REMAT_NONE)
        return value->flags & REMAT_PINNED ? NULL : "a value without a producer is not pinned";
    if (value->node >= problem->nodes)
        return "a value names a producer that does not exist";
    const RematNode *node = &problem->node[value->node];
    if (v < node->value || v - node->value >= node->values)
        return "a value is not among the outputs of its producer";
    return NULL;
}

static const char *node_error(const RematProblem *problem, RematId x, RematId *reader)
{
    const RematNode *node = &problem->node[x];
    if (!(node->cost >= 0 && node->cost <= 1e300))
        return "a cost is negative or not finite";
    if (node->workspace < 0 || node->workspace > LARGEST_SUM)
        return "a workspace is negative or too large";
    if (node->reads > problem->reads || node->read > problem->reads - node->reads)
        return "a node reads outside the table";
    if (node->values > problem->values || node->value > problem->values - node->values)
        return "a node writes outside the table";
    for (RematId v = node->value; v < node->value + node->values; v++)
        if (problem->value[v].node != x)
            return "a value is not made by the node that writes it";
    for (RematId i = 0; i < node->reads; i++) {
        RematId v = problem->read[node->read + i];
        if (v >= problem->values)
            return "a node reads a value that does not exist";
        if (problem->value[v].node != REMAT_NONE && problem->value[v].node >= x)
            return "a node reads a value that is made later";
        if (reader[v] == x + 1)
            return "a node reads a value twice";
        reader[v] = x + 1;
    }
    return NULL;
}

static bool has_value(const RematNode *node, RematId value)
{
    return value >= node->value && value - node->value < node->values;
}

static const char *rule_error(const RematProblem *problem)
{
    RematId run = 0; /* of pairs of one node */
    for (RematId i = 0; i < problem->in_places; i++) {
        const RematInPlace *pair = &problem->in_place[i];
        run = i && pair[-1].node == pair->node ? run + 1 : 1;
        if (run > MOST_PAIRS || (i && pair[-1].node > pair->node))
            return "the in-place pairs of a node are too many, or the pairs are not in order";
        if (pair->node >= problem->nodes || pair->input >= problem->values ||
            !has_value(&problem->node[pair->node], pair->output))
            return "an in-place pair does not fit its node";
        if (problem->value[pair->output].size > problem->value[pair->input].size)
            return "an in-place output is larger than its input";
        if (problem->value[pair->input].flags & REMAT_PINNED)
            return "an in-place input is pinned";
    }
    for (RematId v = 0; v < problem->values; v++) {
        RematId killer = problem->value[v].killer, drop_at = problem->value[v].drop_at;
        if (killer != REMAT_NONE &&
            (killer >= problem->nodes || !(problem->node[killer].flags & REMAT_ONCE)))
            return "a killer does not exist or may run twice";
        if (drop_at != REMAT_NONE && drop_at >= problem->nodes)
            return "a value is dropped at a node that does not exist";
    }
    for (RematId x = 0; x < problem->nodes; x++)
        for (RematId i = 0; i < problem->node[x].reads; i++) {
            RematId killer = problem->value[problem->read[problem->node[x].read + i]].killer;
            if (killer != REMAT_NONE && killer < x)
                return "a node reads a value after it is overwritten";
        }
    return NULL;
}

const char *remat_problem_error(const RematProblem *problem)
{
    const char *error = problem->nodes > MOST_NODES ? "there are too many nodes" : NULL;
    int64_t sum = 0;
    Arena *arena = arena_new();
    RematId *reader = ARENA_ARRAY(arena, RematId, problem->values); /* by value: last reader + 1 */
    for (RematId v = 0; v < problem->values && !error; v++)
        error = value_error(problem, v, &sum);
    for (RematId x = 0; x < problem->nodes && !error; x++)
        error = node_error(problem, x, reader);
    arena_free(arena);
    return error ? error : rule_error(problem);
}

RematSchedule remat_baseline(const RematProblem *problem, Arena *arena)
{
    RematSchedule order = {ARENA_ARRAY(arena, RematId, problem->nodes), problem->nodes};
    for (RematId x = 0; x < problem->nodes; x++)
        order.node[x] = x;
    return order;
}

/* ---- replay ---- */

/* Items by node as linked lists, in ascending order: head[node], then next[item]. */
typedef struct {
    RematId *head, *next;
} Lists;

typedef struct {
    const RematProblem *problem;
    const RematSchedule *schedule;
    Lists pairs, kills, drops;
    bool *live;    /* by value: read later */
    size_t *dies;  /* by value: the last occurrence seen to end a life, plus one */
    size_t *taken; /* by value: the last occurrence where it is half of a pair, plus one */
    int64_t bytes; /* of the live values */
    RematValuation result;
} Replay;

static Lists lists_new(Arena *arena, RematId nodes, RematId items)
{
    Lists lists = {ARENA_ARRAY(arena, RematId, nodes), ARENA_ARRAY(arena, RematId, items)};
    memset(lists.head, 0xff, nodes * sizeof *lists.head);
    return lists;
}

static void lists_add(Lists *lists, RematId node, RematId item)
{
    lists->next[item] = lists->head[node];
    lists->head[node] = item;
}

static int64_t size_of(const RematProblem *problem, RematId value)
{
    const RematValue *v = &problem->value[value];
    return v->flags & REMAT_PINNED ? 0 : v->size;
}

static void prepare(Replay *replay, Arena *arena)
{
    const RematProblem *problem = replay->problem;
    replay->pairs = lists_new(arena, problem->nodes, problem->in_places);
    replay->kills = lists_new(arena, problem->nodes, problem->values);
    replay->drops = lists_new(arena, problem->nodes, problem->values);
    replay->live = ARENA_ARRAY(arena, bool, problem->values);
    replay->dies = ARENA_ARRAY(arena, size_t, problem->values);
    replay->taken = ARENA_ARRAY(arena, size_t, problem->values);
    for (RematId i = problem->in_places; i-- > 0;)
        lists_add(&replay->pairs, problem->in_place[i].node, i);
    for (RematId v = problem->values; v-- > 0;) {
        const RematValue *value = &problem->value[v];
        if (value->killer != REMAT_NONE)
            lists_add(&replay->kills, value->killer, v);
        if (value->drop_at != REMAT_NONE)
            lists_add(&replay->drops, value->drop_at, v);
        if (value->flags & REMAT_OUTPUT && !(value->flags & REMAT_PINNED)) {
            replay->live[v] = true;
            replay->bytes += value->size;
        }
    }
}

static bool breaks(Replay *replay, const char *why, size_t at)
{
    replay->result = (RematValuation){.why = why, .at = at};
    return true;
}

/* Forwards: are the rules kept? */
static bool breaks_rule(Replay *replay, Arena *arena)
{
    const RematProblem *problem = replay->problem;
    const RematSchedule *schedule = replay->schedule;
    size_t *runs = ARENA_ARRAY(arena, size_t, problem->nodes);
    for (size_t t = 0; t < schedule->count; t++) {
        RematId x = schedule->node[t];
        if (x >= problem->nodes)
            return breaks(replay, "a node that does not exist", t);
        const RematNode *node = &problem->node[x];
        if (runs[x] && node->flags & REMAT_ONCE)
            return breaks(replay, "a node runs twice that may run only once", t);
        for (RematId i = 0; i < node->reads; i++) {
            const RematValue *value = &problem->value[problem->read[node->read + i]];
            if (value->node != REMAT_NONE && !runs[value->node])
                return breaks(replay, "a value is read before it is made", t);
            if (value->killer != REMAT_NONE && runs[value->killer])
                return breaks(replay, "a value is read after it is overwritten", t);
        }
        runs[x]++;
    }
    for (RematId x = 0; x < problem->nodes; x++)
        if (!runs[x])
            return breaks(replay, "a node never runs", schedule->count);
    return false;
}

static int64_t saved_in_place(Replay *replay, RematId x, size_t t)
{
    int64_t saved = 0;
    for (RematId i = replay->pairs.head[x]; i != REMAT_NONE; i = replay->pairs.next[i]) {
        const RematInPlace *pair = &replay->problem->in_place[i];
        if (replay->dies[pair->input] != t + 1 || replay->taken[pair->input] == t + 1 ||
            replay->taken[pair->output] == t + 1)
            continue;
        replay->taken[pair->input] = replay->taken[pair->output] = t + 1;
        saved += size_of(replay->problem, pair->output);
    }
    return saved;
}

static void use(Replay *replay, RematId value, size_t t)
{
    if (replay->live[value])
        return;
    replay->live[value] = true;
    replay->dies[value] = t + 1;
    replay->bytes += size_of(replay->problem, value);
}

/* Backwards, where what is live is what was read: the bytes while occurrence t runs. */
static bool step_back(Replay *replay, size_t t)
{
    const RematProblem *problem = replay->problem;
    RematId x = replay->schedule->node[t];
    const RematNode *node = &problem->node[x];
    int64_t freed = 0;
    for (RematId v = node->value; v < node->value + node->values; v++) {
        if (!replay->live[v])
            replay->bytes += size_of(problem, v);
        freed += size_of(problem, v);
        replay->live[v] = false;
    }
    for (RematId v = replay->drops.head[x]; v != REMAT_NONE; v = replay->drops.next[v])
        if (replay->live[v])
            return breaks(replay, "a value is stored that should be made again", t);
    for (RematId i = 0; i < node->reads; i++)
        use(replay, problem->read[node->read + i], t);
    for (RematId v = replay->kills.head[x]; v != REMAT_NONE; v = replay->kills.next[v])
        use(replay, v, t);
    int64_t now = problem->base + replay->bytes + node->workspace - saved_in_place(replay, x, t);
    if (now >= replay->result.peak) {
        replay->result.peak = now;
        replay->result.at = t;
    }
    replay->bytes -= freed;
    replay->result.cost += node->cost;
    return false;
}

RematValuation remat_evaluate(const RematProblem *problem, const RematSchedule *schedule)
{
    Replay replay = {.problem = problem, .schedule = schedule, .result = {.valid = true}};
    Arena *arena = arena_new();
    if (!breaks_rule(&replay, arena)) {
        prepare(&replay, arena);
        for (size_t t = schedule->count; t-- > 0;)
            if (step_back(&replay, t))
                break;
    }
    arena_free(arena);
    return replay.result;
}
