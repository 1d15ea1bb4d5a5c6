/* Questions about a model that take several plans: each is made from the text anew, quietly. */
#ifndef GPLAN_ATTEMPT_H
#define GPLAN_ATTEMPT_H

#include "codegen/codegen.h"
#include "frontend/command/options.h"

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

/* What the planner may choose in how a model is lowered. */
typedef struct {
    uint32_t times; /* micro-batches; 0: as the model says */
    bool sliced;    /* losses of products run in slices */
    bool loops;     /* elementwise ops run with each other, none behind a product */
} Choice;

bool choice_is(Choice a, Choice b);

/* The model with a parameter set (name NULL: none), lowered so and fused, in an arena of its own.
 */
typedef struct {
    Arena *arena;
    Graph *graph; /* NULL: it cannot be lowered so */
    Clusters *clusters;
} Lowered;

/* What one plan came to. */
typedef struct {
    bool valid;     /* the model can be planned so at all */
    uint64_t arena; /* without --reserve */
    double cost;
    Choice choice;
    Plan *plan;    /* until the outcome is dropped */
    Lowered model; /* that it is of */
} Outcome;

/* What was chosen, and why. */
typedef struct {
    Choice choice;
    Plan *plan;                         /* NULL: nothing had to be planned in order to choose */
    const char *micro, *slices, *tails; /* for the report; NULL: there was nothing to choose */
} Chosen;

/* The plan options that the command line asks for. */
PlanOptions plan_options(const Options *o);

/* ---- Single plans (attempt.c) --------------------------------------------------------------- */

Lowered lower_again(const Subject *s, const char *name, int64_t value, Choice choice);
void lowered_free(Lowered *model);
Outcome attempt(const Subject *s, const char *name, int64_t value, Choice choice,
                const PlanOptions *how);
void outcome_drop(Outcome *outcome);

/* ---- The largest value (largest.c) ---------------------------------------------------------- */

/* How large a parameter can be. */
typedef struct {
    int64_t value; /* the largest that was seen to fit the budget; 0: none was */
    int64_t next;  /* the next one that the model can be lowered with; 0: there is none near */
    uint64_t need; /* the smallest arena found for that */
    int64_t least; /* the smallest that the model can be lowered with; 0: there is none near */
    bool cut;      /* the search ended early, so others may fit */
} Largest;

/* Bisects with little effort; `sure`: then looks around with the effort asked for, and finds the
 * next one. */
Largest largest_value(const Subject *s, const char *name, bool sure);

/* ---- Choosing (choose.c) -------------------------------------------------------------------- */

/* A way to lower the model that may be chosen. */
typedef struct {
    Choice choice;
    double least; /* estimated seconds with nothing computed again */
    bool tried, fits;
    double cost; /* of the plan that was tried */
} Candidate;

typedef struct {
    Candidate *at; /* the cheapest first */
    size_t count;
} Candidates;

/* Estimated seconds of a training step, or of a forward pass where there is none, with nothing
 * computed again, in as many micro-batches as the model says, no slices, ops behind products: what
 * extra time is counted from. */
double least_cost(const Subject *s, const char *name, int64_t value);

/* With at least `first` micro-batches where their number is open. */
Candidates list_candidates(const Subject *s, const char *name, int64_t value, uint32_t first);
/* The best of them: the cheapest that fits the budget, or without one the smallest; where none fits
 * the smallest too. To be dropped. Marks what was tried. */
Outcome attempt_best(const Subject *s, const char *name, int64_t value, Candidates *from,
                     const PlanOptions *how);
/* The number of micro-batches above 1 that gives the cheapest plan; times 0: none fits. */
Outcome attempt_micro(const Subject *s, const PlanOptions *how);
/* How the command lowers the model. */
Chosen choose(const Subject *s, const PlanOptions *how);

/* ---- The answers of the command (answers.c) ------------------------------------------------- */

int answer_max(const Subject *s);
int answer_pareto(const Subject *s);
void explain_misfit(const Subject *s, const Plan *plan);

#endif
