/* A model's text, or a graph, taken through every pass up to a checked plan. */
#ifndef TESTS_PLANNED_H
#define TESTS_PLANNED_H

#include "codegen/codegen.h"

typedef struct {
    Arena *arena;
    Graph *graph;
    Clusters *clusters;
    Plan *plan;
    Search search;
    LivePeak live_peak; /* that plan_check saw */
    Target target;
    const char *fault; /* what plan_check said of it */
} Planned;

/* `how` and `target` may be NULL: no options, the C target. Messages go to standard error; a model
 * that is wrong fails the test. */
Planned planned_text(const char *text, const PlanOptions *how, const Target *target);
Planned planned_training(const char *text, const PlanOptions *how); /* with its train statement */
Planned planned_graph(Arena *arena, Graph *g, const PlanOptions *how, const Target *target);
void planned_free(Planned *p);

/* The buffer and the cluster of a result or input, by the name it has in the text. */
const Buffer *planned_buffer(const Planned *p, const char *name); /* NULL: not stored */
Id planned_root(const Planned *p, const char *name);
const Cluster *planned_cluster(const Planned *p, const char *name);
/* How many roots of a kind there are. */
Id planned_roots(const Planned *p, BufferKind kind);

#endif
