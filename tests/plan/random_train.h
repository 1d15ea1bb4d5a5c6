/* Training at random: random calls (random_graph.h) on parameters and inputs, in micro-batches or
 * not, with dropout, running statistics, losses in slices, and an optimizer with its state. */
#ifndef TESTS_RANDOM_TRAIN_H
#define TESTS_RANDOM_TRAIN_H

#include "frontend/frontend.h"

/* NULL where something on the way has no derivative. */
Graph *random_training(Arena *arena, uint64_t seed);

#endif
