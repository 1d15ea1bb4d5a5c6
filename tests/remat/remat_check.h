/* What a schedule is worth, by a second hand: straight from the definition, slow, sharing no code
 * with the planner. And the true optimum of tiny problems, by looking at every state. */
#ifndef REMAT_CHECK_H
#define REMAT_CHECK_H

#include "planner/remat/remat.h"

/* The peak, or -1 when a rule is broken. */
int64_t check_peak(const RematProblem *problem, const RematSchedule *schedule);
double check_cost(const RematProblem *problem, const RematSchedule *schedule);

/* Least cost within the budget, or -1 when nothing fits. One value a node, at most 10 nodes, whole
 * costs, no rules but size and order. */
long exact_cost(const RematProblem *problem, int64_t budget);

/* Griewank and Walther 2000: fewest forward steps to reverse a chain with this many snapshots. */
long revolve_steps(long steps, long snapshots);

#endif
