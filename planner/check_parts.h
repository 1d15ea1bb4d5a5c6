/* The parts of plan_check beside the replay. Each gives what is wrong, or NULL; its text is
 * in the arena. */
#ifndef GPLAN_CHECK_PARTS_H
#define GPLAN_CHECK_PARTS_H

#include "planner/planner.h"

/* check_graph.c: the graph against the rows, the clusters against the graph. */
const char *check_graph(Arena *arena, const Graph *g, const Clusters *clusters);
/* check_ranks.c: what ranks do together, in one order, complete. Requires a graph that check_graph
 * takes. */
const char *check_ranks(Arena *arena, const Graph *g);
/* check_lives.c: what the plan says of its buffers and how long they live, against its steps and
 * against each other. Requires a graph that check_graph takes. */
const char *check_lives(Arena *arena, const Plan *plan, const Target *target);
/* check_ring.c: the slots that data is read into. Requires a graph that check_graph takes. */
const char *check_ring(Arena *arena, const Plan *plan, const Target *target);
/* Whether the value is a new version of another, in its bytes; the version that it began as; and
 * whether that is there before a program runs and after it. Not the planner's word for it. */
bool check_is_version(const Graph *g, Id value);
Id check_first(const Graph *g, Id value);
bool check_is_persistent(const Graph *g, Id value);

#endif
