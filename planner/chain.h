/* Schedules of a program that is a chain of blocks: what each block stores for the backward pass.
 *
 * Blocks of one structure share a few policies, from storing everything to storing their inputs
 * alone, found on one of them and stamped onto the others. The steps from each policy to the next
 * are taken in the order of what a byte costs, over all blocks: a knapsack by its Lagrangian, which
 * is off the best choice of policies by at most one step (Chen et al. 2016 and Beaumont et al. 2019
 * choose among fewer).
 */
#ifndef GPLAN_CHAIN_H
#define GPLAN_CHAIN_H

#include "frontend/base/arena.h"
#include "planner/remat/remat.h"

typedef struct Chain Chain;

/* block: by node, its number in the order in which they begin, or REMAT_NONE; back: the first node
 * of the backward pass. NULL: there is nothing that a block could drop. */
Chain *chain_new(const RematProblem *problem, const RematId *block, RematId back, Arena *arena);

/* Some of the schedules between no step and all of them, each costlier than the one before. */
typedef struct {
    size_t steps;
    int64_t peak;
    double cost;
} ChainPoint;
const ChainPoint *chain_points(const Chain *chain, size_t *count);
RematSchedule chain_schedule(Chain *chain, size_t point);

#endif
