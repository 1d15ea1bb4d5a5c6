/* What the checks of a plan file share. */
#ifndef GPLAN_VERIFY_H
#define GPLAN_VERIFY_H

#include "codegen/plan_json.h"

/* The graph against the rows, the clusters against the graph. False with *error. */
bool graph_verify(Arena *arena, PlanFile *file, const char **error);

#endif
