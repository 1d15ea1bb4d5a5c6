/* What the tests check of every packing they get. */
#ifndef GPLAN_TESTS_PACK_JUDGE_H
#define GPLAN_TESTS_PACK_JUDGE_H

#include "planner/pack/pack.h"

/* Compares every pair of buffers: quadratic, and too simple to be wrong. NULL, or the fault. */
const char *judge_pairs(const PackProblem *problem, const PackSolution *solution);

/* pack_check, and judge_pairs too where there are few buffers; then that status, stop, height,
 * bound and `optimal` agree with one another. NULL, or what is wrong. */
const char *judge(const PackProblem *problem, PackStatus status, const PackSolution *solution);

#endif
