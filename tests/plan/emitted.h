/* A plan as a program of its own: emitted, compiled with gcc, and run. */
#ifndef TESTS_EMITTED_PLAN_H
#define TESTS_EMITTED_PLAN_H

#include "tests/plan/run_plan.h"

/* Trains the emitted program for as many steps as the plain run did, from the same numbers, and
 * compares outputs, parameters and state bit for bit. NULL where all are equal. */
const char *emitted_differs(Arena *arena, const Plan *plan, const PlainRun *plain, uint64_t seed,
                            uint64_t steps);

#endif
