/* Problems to test and measure with: all small integers, all the same on every machine. */
#ifndef REMAT_GENERATE_H
#define REMAT_GENERATE_H

#include "frontend/base/arena.h"
#include "planner/remat/remat.h"

/* A problem under construction; inputs of a node must exist before it. */
typedef struct {
    Arena *arena;
    RematProblem problem;
    ARRAY(RematNode) node;
    ARRAY(RematValue) value;
    ARRAY(RematId) read;
    ARRAY(RematInPlace) in_place;
} Generator;

Generator generate_begin(Arena *arena);
RematId generate_source(Generator *g); /* a pinned value without a producer */
RematId generate_node(Generator *g, double cost, int64_t size, const RematId *read, size_t reads);
RematProblem generate_end(Generator *g);

/* Layers of random nodes that read from the last few layers. */
RematProblem generate_random(Arena *arena, RematId nodes, RematId reach, uint64_t seed);

/* `steps` states of size 1, then their reversal: step i reads state i - 1 and what step i + 1
 * left. A state may take the bytes of the one before it. The first state is kept. */
RematProblem generate_reversal(Arena *arena, int steps);

/* A training step of a decoder with about `nodes` nodes: per layer nine nodes forward and
 * eighteen backward and update, sizes and costs in the ratios of the real ones. */
RematProblem generate_decoder(Arena *arena, RematId nodes);

uint64_t generate_bits(uint64_t *seed);

#endif
