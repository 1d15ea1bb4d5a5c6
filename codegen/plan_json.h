/* The JSON form of a plan, shared by those who write it and those who read it. See PLAN.md. */
#ifndef GPLAN_PLAN_JSON_H
#define GPLAN_PLAN_JSON_H

#include "codegen/picture.h"

#include <jansson.h>

#define PLAN_FORMAT "gplan.plan"
enum { PLAN_VERSION = 3 };

/* Before any JSON: where memory runs out, jansson ends the program as an arena does. */
void json_begin(void);

/* What follows from the rest of the file, for those who only look: also the report's numbers. */
json_t *summary_json(const Picture *p);

/* A file as read: tables filled, every id and extent in range, nothing else believed. */
typedef struct {
    Graph *g;
    Clusters *clusters;
    Plan *plan;
    Target target;
    json_t *summary; /* as the file has it, or NULL; belongs to the file */
    uint64_t budget; /* 0: none */
} PlanFile;

/* False with *error where the file is no plan. */
bool plan_read(Arena *arena, const json_t *file, PlanFile *read, const char **error);

#endif
