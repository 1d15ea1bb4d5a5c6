/* What passes leave, as text: -d PASS,PASS. */
#ifndef GPLAN_DUMP_H
#define GPLAN_DUMP_H

#include "planner/planner.h"

#define PASSES "lower,train,simplify,fuse,plan"

bool dump_knows(const char *list); /* each of the comma list is a pass */
/* The passes of a list, in their order, on standard output. */
void dump(const char *list, const Model *model, const Built *built);

#endif
