/* Equal layers of a problem: where its nodes, in the given order, repeat themselves.
 *
 * Requires: a problem. Leaves: runs of at least three layers that do not overlap; nodes that stand
 * at the same place of two layers cost the same, and read and write values of the same sizes.
 * O(nodes x MAX_PERIOD).
 */
#include "planner/remat/internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PERIOD = 400, LEAST_LAYERS = 3 };

static uint64_t mix(uint64_t hash, uint64_t item)
{
    hash = (hash ^ item) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t kind_of(const RematProblem *problem, RematId n)
{
    const RematNode *node = &problem->node[n];
    uint64_t cost, hash = mix(mix(mix(0, (uint64_t)node->workspace), node->reads), node->flags);
    memcpy(&cost, &node->cost, sizeof cost);
    hash = mix(hash, cost);
    for (RematId i = 0; i < node->reads; i++)
        hash = mix(hash, (uint64_t)problem->value[problem->read[node->read + i]].size);
    for (RematId i = 0; i < node->values; i++)
        hash = mix(hash, (uint64_t)problem->value[node->value + i].size);
    return hash;
}

static int by_length(const void *a, const void *b)
{
    const RematLayers *x = a, *y = b;
    const int64_t more = (int64_t)x->period * (x->times - 1),
                  less = (int64_t)y->period * (y->times - 1);
    if (more != less)
        return more > less ? -1 : 1;
    if (x->period != y->period)
        return x->period < y->period ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool is_free(const bool *taken, RematLayers run)
{
    for (int32_t i = 0; i < run.period * run.times; i++)
        if (taken[run.begin + i])
            return false;
    return true;
}

size_t remat_find_layers(const RematProblem *problem, RematLayers **layers, Arena *arena)
{
    const int32_t nodes = (int32_t)problem->nodes;
    uint64_t *kind = ARENA_ARRAY(arena, uint64_t, problem->nodes + 1);
    bool *taken = ARENA_ARRAY(arena, bool, problem->nodes + 1);
    ARRAY(RematLayers) run = {0};
    size_t count = 0;
    for (RematId n = 0; n < problem->nodes; n++)
        kind[n] = kind_of(problem, n);
    for (int32_t period = 2; period <= MAX_PERIOD && period * LEAST_LAYERS <= nodes; period++)
        for (int32_t i = 0, length = 0; i + period <= nodes; i++) {
            if (i + period < nodes && kind[i] == kind[i + period]) {
                length++;
                continue;
            }
            if (length / period + 1 >= LEAST_LAYERS)
                ARRAY_PUSH(arena, &run, (RematLayers){i - length, period, length / period + 1});
            length = 0;
        }
    if (run.count)
        qsort(run.at, run.count, sizeof *run.at, by_length);
    for (size_t i = 0; i < run.count; i++)
        if (is_free(taken, run.at[i])) {
            memset(taken + run.at[i].begin, 1, (size_t)(run.at[i].period * run.at[i].times));
            run.at[count++] = run.at[i];
        }
    *layers = run.at;
    return count;
}
