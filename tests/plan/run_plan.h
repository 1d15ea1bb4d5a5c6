/* Runs a graph twice, for tests: as it stands, with each value in a block of its own, and as a plan
 * has it, on one arena. Both call the same kernels, so what they give is equal bit for bit unless
 * the plan is wrong.
 *
 * A cluster of elementwise nodes runs element by element, as its emitted loop does: an operand that
 * a result was wrongly laid over is then read after it was changed.
 */
#ifndef TESTS_RUN_PLAN_H
#define TESTS_RUN_PLAN_H

#include "planner/planner.h"

/* Blocks of a run without a plan, by value; NULL for what needs none. */
typedef struct {
    const Graph *graph;
    unsigned char **block;
    int status; /* what the first kernel that failed returned, or 0 */
} PlainRun;

/* Persistent values hold numbers that follow from the seed. */
PlainRun plain_run(const Graph *g, uint64_t seed);
void plain_free(PlainRun *run);

/* Runs the plan's forward program and compares its outputs with those of the plain run. With
 * `poison`, bytes that the plan calls dead hold NaN. NULL where all is equal, else what is not. */
const char *plan_differs(Arena *arena, const Plan *plan, const PlainRun *plain, uint64_t seed,
                         bool poison);

#endif
