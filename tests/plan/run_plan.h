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
#include "runtime/runtime.h"

/* Blocks of a run without a plan, by value; NULL for what needs none. */
typedef struct {
    const Graph *graph;
    unsigned char **block;
    gp_run run;
    int status; /* what the first kernel that failed returned, or 0 */
} PlainRun;

/* Persistent values hold numbers that follow from the seed. */
PlainRun plain_run(const Graph *g, uint64_t seed);
/* Steps of training, then the forward program. */
PlainRun plain_train(const Graph *g, uint64_t seed, uint64_t steps);
void plain_free(PlainRun *run);
/* What a persistent value holds at first; whether a value now holds these elements. */
void plain_fill(const Graph *g, Id value, uint64_t seed, void *to);
bool plain_same(const PlainRun *run, Id value, const void *got);

/* Runs the plan's forward program and compares its outputs with those of the plain run. With
 * `poison`, bytes that the plan calls dead hold NaN. NULL where all is equal, else what is not. */
const char *plan_differs(Arena *arena, const Plan *plan, const PlainRun *plain, uint64_t seed,
                         bool poison);

/* Runs steps of training and then the forward program, without a plan and as planned. */
typedef struct {
    const char *wrong; /* which output, parameter or state differs in some bit; NULL: none */
    bool ran;          /* no kernel met an index outside its table */
    bool finite;       /* so are all parameters and state at the end */
} Trained;
Trained plan_trains(Arena *arena, const Plan *plan, uint64_t seed, uint64_t steps);

#endif
