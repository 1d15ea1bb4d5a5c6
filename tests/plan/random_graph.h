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

/* A graph that is being made: what later calls may read, and where the next name comes from. */
enum { MAX_POOL = 80 };
typedef struct {
    Graph *g;
    Random random;
    Use pool[MAX_POOL];
    int count;
    int calls;
    size_t rows; /* of the registry */
    bool tame;   /* numbers stay near 1, so that what is computed is not all NaN */
} Maker;

Maker maker_new(Arena *arena, uint64_t seed);
/* One more call of something; what a rule refuses is left out. */
void maker_call(Maker *m);
Use maker_pick(Maker *m); /* recent values more often than old ones */
void maker_keep(Maker *m, Use use);
Call maker_begin(Maker *m, const char *op);
void maker_finish(Maker *m, Call *c);
/* Up to three results as outputs. */
void maker_outputs(Maker *m);

Graph *random_graph(Arena *arena, uint64_t seed);

#endif
