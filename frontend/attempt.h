/* Questions about a model that take several plans: each is made from the text anew, quietly. */
#ifndef GPLAN_ATTEMPT_H
#define GPLAN_ATTEMPT_H

#include "codegen/codegen.h"
#include "frontend/options.h"

/* What is being asked about. */
typedef struct {
    Arena *arena;
    Diag *diag;
    const Options *options;
    const Source *source;
    const Ast *ast;
    const Graph *graph; /* as it was lowered for inference */
    Target target;
} Subject;

/* What one plan came to. */
typedef struct {
    bool valid;     /* the model can be planned so at all */
    uint64_t arena; /* without --reserve */
    double cost, least_cost;
    uint32_t times; /* micro-batches */
} Outcome;

/* The plan options that the command line asks for. */
PlanOptions plan_options(const Options *o);

/* Whether the number of micro-batches is the planner's to choose. */
bool accumulate_is_auto(const Options *o, const Graph *g);

/* One plan, with a parameter of the model set (name NULL: none) and `times` micro-batches (0: as
 * the model says). */
Outcome attempt(const Subject *s, const char *name, int64_t value, uint32_t times,
                const PlanOptions *how);
/* The same, with the best number of micro-batches where that is to be chosen: the cheapest that
 * fits the budget, or without one the smallest. */
Outcome attempt_auto(const Subject *s, const char *name, int64_t value, const PlanOptions *how);
/* The cheapest number of micro-batches above 1 that fits the budget; times 0: none does. */
Outcome attempt_micro(const Subject *s, const PlanOptions *how);

/* The largest value of the parameter that fits the budget; 0: none does. Bisects with little
 * effort; `sure`: then looks around with the effort asked for. */
int64_t largest_value(const Subject *s, const char *name, bool sure);

/* The answers of the command. */
int answer_max(const Subject *s);
int answer_pareto(const Subject *s, Graph *g, const Clusters *clusters);
void explain_misfit(const Subject *s, const Plan *plan);

#endif
