#include "remat_check.h"
#include "frontend/base/arena.h"

#include <stdlib.h>

static bool node_reads(const RematProblem *problem, RematId x, RematId value)
{
    for (RematId i = 0; i < problem->node[x].reads; i++)
        if (problem->read[problem->node[x].read + i] == value)
            return true;
    return problem->value[value].killer == x;
}

/* Is there a read of the value after t, before it is made again? */
static bool needed_after(const RematProblem *problem, const RematSchedule *schedule, RematId value,
                         size_t t)
{
    for (size_t u = t + 1; u < schedule->count; u++) {
        if (node_reads(problem, schedule->node[u], value))
            return true;
        if (problem->value[value].node == schedule->node[u])
            return false;
    }
    return problem->value[value].flags & REMAT_OUTPUT;
}

static bool ran_before(const RematSchedule *schedule, RematId x, size_t t)
{
    for (size_t u = 0; u < t; u++)
        if (schedule->node[u] == x)
            return true;
    return false;
}

static int64_t saved_at(const RematProblem *problem, const RematSchedule *schedule, size_t t)
{
    RematId x = schedule->node[t];
    bool *used = calloc(problem->values, sizeof *used);
    int64_t saved = 0;
    for (RematId i = 0; i < problem->in_places; i++) {
        RematInPlace pair = problem->in_place[i];
        if (pair.node != x || used[pair.input] || used[pair.output] ||
            needed_after(problem, schedule, pair.input, t))
            continue;
        used[pair.input] = used[pair.output] = true;
        saved += problem->value[pair.output].size;
    }
    free(used);
    return saved;
}

static int64_t live_at_occurrence(const RematProblem *problem, const RematSchedule *schedule,
                                  size_t t)
{
    RematId x = schedule->node[t];
    int64_t bytes = problem->base + problem->node[x].workspace - saved_at(problem, schedule, t);
    for (RematId v = 0; v < problem->values; v++) {
        const RematValue *value = &problem->value[v];
        if (value->flags & REMAT_PINNED)
            continue;
        bool reads = node_reads(problem, x, v), makes = value->node == x;
        bool made = ran_before(schedule, value->node, t);
        bool later = needed_after(problem, schedule, v, t);
        if (reads &&
            (!made || (value->killer != REMAT_NONE && ran_before(schedule, value->killer, t))))
            return -1;
        if (value->drop_at == x && made && later && !makes)
            return -1;
        if (reads || makes || (made && later))
            bytes += value->size;
    }
    return bytes;
}

int64_t check_peak(const RematProblem *problem, const RematSchedule *schedule)
{
    int64_t peak = 0;
    for (RematId x = 0; x < problem->nodes; x++) {
        size_t runs = 0;
        for (size_t t = 0; t < schedule->count; t++)
            runs += schedule->node[t] == x;
        if (!runs || (runs > 1 && problem->node[x].flags & REMAT_ONCE))
            return -1;
    }
    for (size_t t = 0; t < schedule->count; t++) {
        RematId x = schedule->node[t];
        for (RematId i = 0; i < problem->node[x].reads; i++) {
            RematId killer = problem->value[problem->read[problem->node[x].read + i]].killer;
            if (killer != REMAT_NONE && ran_before(schedule, killer, t))
                return -1;
        }
        int64_t bytes = live_at_occurrence(problem, schedule, t);
        if (bytes < 0)
            return -1;
        peak = bytes > peak ? bytes : peak;
    }
    return peak;
}

double check_cost(const RematProblem *problem, const RematSchedule *schedule)
{
    double cost = 0;
    for (size_t t = 0; t < schedule->count; t++)
        cost += problem->node[schedule->node[t]].cost;
    return cost;
}

/* ---- the optimum: shortest path over (nodes done, values live) ---- */

enum { MOST_COST = 4000 };

typedef struct {
    unsigned state, next; /* next: of the same cost, plus one */
} Reached;

typedef struct {
    const RematProblem *problem;
    Arena *arena;
    unsigned nodes;
    int *cost;                      /* by state: done << nodes | live; -1 not reached */
    unsigned bucket[MOST_COST + 1]; /* by cost: the first, plus one */
    ARRAY(Reached) reached;
} Exact;

static void reach(Exact *exact, unsigned state, int cost)
{
    if (cost > MOST_COST || (exact->cost[state] >= 0 && exact->cost[state] <= cost))
        return;
    exact->cost[state] = cost;
    ARRAY_PUSH(exact->arena, &exact->reached, (Reached){state, exact->bucket[cost]});
    exact->bucket[cost] = (unsigned)exact->reached.count;
}

static void expand(Exact *exact, unsigned state, int64_t budget)
{
    const RematProblem *problem = exact->problem;
    unsigned n = exact->nodes, mask = (1u << n) - 1, live = state & mask, done = state >> n;
    int64_t bytes = 0;
    for (unsigned v = 0; v < n; v++)
        bytes += live >> v & 1 ? problem->value[v].size : 0;
    for (unsigned v = 0; v < n; v++)
        if (live >> v & 1)
            reach(exact, done << n | (live & ~(1u << v)), exact->cost[state]);
    for (unsigned x = 0; x < n; x++) {
        bool ready = !(live >> x & 1) && bytes + problem->value[x].size <= budget;
        for (RematId i = 0; i < problem->node[x].reads; i++)
            ready &= live >> problem->read[problem->node[x].read + i] & 1;
        if (ready)
            reach(exact, (done | 1u << x) << n | live | 1u << x,
                  exact->cost[state] + (int)problem->node[x].cost);
    }
}

long exact_cost(const RematProblem *problem, int64_t budget)
{
    Exact exact = {.problem = problem, .arena = arena_new(), .nodes = problem->nodes};
    size_t states = (size_t)1 << (2 * problem->nodes);
    exact.cost = ARENA_ARRAY(exact.arena, int, states);
    for (size_t i = 0; i < states; i++)
        exact.cost[i] = -1;
    reach(&exact, 0, 0);
    long best = -1;
    unsigned all = (1u << problem->nodes) - 1;
    for (int cost = 0; cost <= MOST_COST && best < 0; cost++)
        while (exact.bucket[cost] && best < 0) {
            Reached reached = exact.reached.at[exact.bucket[cost] - 1];
            exact.bucket[cost] = reached.next;
            if (exact.cost[reached.state] != cost)
                continue;
            if (reached.state >> problem->nodes == all)
                best = cost;
            expand(&exact, reached.state, budget);
        }
    arena_free(exact.arena);
    return best;
}

static long binomial(long n, long k)
{
    long result = 1;
    for (long i = 1; i <= k; i++)
        result = result * (n - k + i) / i;
    return n < 0 ? 0 : result;
}

long revolve_steps(long steps, long snapshots)
{
    long r = 0;
    while (binomial(snapshots + r, snapshots) < steps)
        r++;
    return r ? r * steps - binomial(snapshots + r, snapshots + 1) : 0;
}
