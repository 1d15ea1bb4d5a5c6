#include "planner/rematerialize.h"

Again again_new(const RematProblem *problem, RematId back, Arena *arena)
{
    return (Again){.problem = problem,
                   .arena = arena,
                   .back = back,
                   .made = ARENA_ARRAY(arena, uint32_t, problem->values),
                   .seen = ARENA_ARRAY(arena, uint32_t, problem->values)};
}

void again_begin(Again *again)
{
    again->round++;
    again->node.count = 0;
    again->broken = false;
    again->cost = 0;
    again->kept = 0;
}

static bool is_gone(const Again *again, RematId v)
{
    RematId from = again->problem->value[v].node;
    return from != REMAT_NONE && from < again->back && again->droppable[v] &&
           again->dropped[from] && again->made[v] != again->round;
}

static void see(Again *again, RematId v)
{
    const RematValue *value = &again->problem->value[v];
    if (again->seen[v] == again->round || again->made[v] == again->round ||
        value->flags & REMAT_PINNED || value->node == REMAT_NONE || value->node >= again->back ||
        (again->free && again->free[v]))
        return;
    again->seen[v] = again->round;
    again->kept += value->size;
}

/* Pushes those who make what the node reads and what is gone; false: nothing is. */
static bool push_missing(Again *again, RematId n)
{
    const RematProblem *problem = again->problem;
    const RematNode *node = &problem->node[n];
    size_t waiting = again->stack.count;
    for (RematId i = 0; i < node->reads; i++) {
        RematId v = problem->read[node->read + i];
        if (is_gone(again, v))
            ARRAY_PUSH(again->arena, &again->stack, problem->value[v].node);
    }
    return again->stack.count > waiting;
}

static void run(Again *again, RematId n)
{
    const RematNode *node = &again->problem->node[n];
    for (RematId i = 0; i < node->reads; i++) {
        RematId v = again->problem->read[node->read + i];
        see(again, v);
        again->broken |= again->problem->value[v].killer < again->now;
    }
    for (RematId v = node->value; v < node->value + node->values; v++)
        again->made[v] = again->round;
    again->cost += node->cost;
    ARRAY_PUSH(again->arena, &again->node, n);
}

/* Whether a value of it is still gone: it may have been pushed twice. */
static bool is_missing(const Again *again, RematId n)
{
    const RematNode *node = &again->problem->node[n];
    for (RematId v = node->value; v < node->value + node->values; v++)
        if (is_gone(again, v))
            return true;
    return false;
}

static void run_stack(Again *again)
{
    while (again->stack.count) {
        RematId n = again->stack.at[again->stack.count - 1];
        bool missing = is_missing(again, n);
        if (missing && push_missing(again, n))
            continue;
        again->stack.count--;
        if (missing)
            run(again, n);
    }
}

void again_visit(Again *again, RematId n)
{
    const RematNode *node = &again->problem->node[n];
    again->now = n;
    if (push_missing(again, n))
        run_stack(again);
    for (RematId i = 0; i < node->reads; i++)
        see(again, again->problem->read[node->read + i]);
}

static bool reads(const Again *again, RematId n, RematId v)
{
    const RematNode *node = &again->problem->node[n];
    for (RematId i = 0; i < node->reads; i++)
        if (again->problem->read[node->read + i] == v)
            return true;
    return false;
}

/* By value: nodes from `first` on read it, or have to make again what is made from it. */
static const bool *find_needed(const Again *again, RematId first)
{
    const RematProblem *problem = again->problem;
    bool *needed = ARENA_ARRAY(again->arena, bool, problem->values);
    for (RematId n = problem->nodes; n-- > 0;) {
        const RematNode *node = &problem->node[n];
        bool runs = n >= first;
        for (RematId v = node->value; v < node->value + node->values; v++)
            runs |= needed[v] && is_gone(again, v);
        for (RematId i = 0; runs && i < node->reads; i++)
            needed[problem->read[node->read + i]] = true;
    }
    return needed;
}

/* The node overwrites the value: what is made from it and is still to be made again, is now. */
static void run_ahead(Again *again, RematId n, RematId v)
{
    const RematProblem *problem = again->problem;
    const bool *needed = NULL;
    for (RematId from = 0; from < again->back; from++) {
        const RematNode *node = &problem->node[from];
        if (!is_missing(again, from) || !reads(again, from, v))
            continue;
        if (!needed)
            needed = find_needed(again, n);
        bool wanted = false;
        for (RematId u = node->value; u < node->value + node->values; u++)
            wanted |= needed[u] && is_gone(again, u);
        if (wanted)
            ARRAY_PUSH(again->arena, &again->stack, from);
        run_stack(again);
    }
}

/* By node: it overwrites a value, as the update of a parameter does. */
static const bool *find_killers(const RematProblem *problem, Arena *arena)
{
    bool *kills = ARENA_ARRAY(arena, bool, problem->nodes);
    for (RematId v = 0; v < problem->values; v++)
        if (problem->value[v].killer != REMAT_NONE)
            kills[problem->value[v].killer] = true;
    return kills;
}

RematSchedule again_run(Again *again)
{
    const bool *kills = again->ahead ? find_killers(again->problem, again->arena) : NULL;
    again_begin(again);
    for (RematId n = 0; n < again->problem->nodes; n++) {
        if (n > again->back)
            again_visit(again, n);
        for (RematId v = 0; kills && kills[n] && n > again->back && v < again->problem->values; v++)
            if (again->problem->value[v].killer == n)
                run_ahead(again, n, v);
        ARRAY_PUSH(again->arena, &again->node, n);
    }
    return (RematSchedule){again->node.at, again->node.count};
}
