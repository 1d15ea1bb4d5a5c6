/* Graphs at random: rows of the registry with random operands and settings, views, joins, values
 * that many read. What a row's rule refuses is left out, so every graph is a right one. */
#ifndef TESTS_RANDOM_GRAPH_H
#define TESTS_RANDOM_GRAPH_H

#include "frontend/frontend.h"

typedef struct {
    uint64_t state;
} Random;

Random random_new(uint64_t seed);
uint64_t random_below(Random *random, uint64_t n);
bool random_chance(Random *random, int percent);

Graph *random_graph(Arena *arena, uint64_t seed);

#endif
