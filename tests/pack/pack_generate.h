/* Packing problems made up for tests and measurements. All follow from their seed alone. */
#ifndef GPLAN_TESTS_PACK_GENERATE_H
#define GPLAN_TESTS_PACK_GENERATE_H

#include "frontend/base/arena.h"
#include "planner/pack/pack.h"

/* A rectangle cut at random into `count` buffers: the optimum is `height`, without a hole. Cuts
 * fall on multiples of `grain` in size; count is at most what the rectangle allows. */
PackProblem generate_perfect(Arena *arena, size_t count, uint64_t height, uint64_t grain,
                             uint64_t seed);

/* Random lifetimes of at most `longest` within [0, span), sizes in [1, largest]. */
PackProblem generate_random(Arena *arena, size_t count, int64_t span, int64_t longest,
                            uint64_t largest, uint64_t seed);

/* `splits` random buffers cut in two, in time or in size: what could be packed still can. */
PackProblem generate_split(Arena *arena, const PackProblem *problem, size_t splits, uint64_t seed);

uint64_t generate_number(uint64_t *state); /* the next of a random sequence */

#endif
