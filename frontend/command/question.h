/* What the command is asked, and what it answers beside a program: the largest value of a parameter
 * that fits, a table of budgets, why a model does not fit. Each makes its own plans, by choose.
 */
#ifndef GPLAN_QUESTION_H
#define GPLAN_QUESTION_H

#include "codegen/codegen.h"
#include "frontend/command/options.h"

typedef struct {
    Arena *arena;
    Diag *diag;
    const Options *options;
    const Model *model;
    const Target *target;
    const OnnxImport *import; /* that the model is from; NULL: it was written */
} Question;

/* ---- Whether the model has what is asked of it (suits.c) ------------------------------------ */

/* False with a message. */
bool model_suits(Diag *diag, const Model *model, const Options *o);

/* ---- The largest value (largest.c) ---------------------------------------------------------- */

/* How large a parameter can be. */
typedef struct {
    int64_t value;  /* the largest that was seen to fit the budget; 0: none was */
    int64_t next;   /* the next one that the model can be planned with; 0: none nearby */
    uint64_t need;  /* the smallest arena found for that */
    bool floor;     /* no arena was: that is what none is smaller than */
    int64_t least;  /* the smallest that the model can be planned with; 0: none nearby */
    uint32_t micro; /* micro-batches that the value was seen to fit with */
    bool cut;       /* the search ended early, so others may fit */
} Largest;

/* From the value that the parameter has now, planned as `how` says. Bisects with little effort;
 * `sure`: then looks around with the effort asked for, and finds the next one. */
Largest largest_value(const Question *q, const PlanOptions *how, const char *name, int64_t now,
                      bool sure);

/* ---- The answers (answers.c) ---------------------------------------------------------------- */

int answer_max(const Question *q);
int answer_min_budget(const Question *q, const Built *smallest);
int answer_pareto(const Question *q);
int answer_graph(const Question *q); /* a drawing of the model, which asks for no plan */
/* The fewest micro-batches above one that the batch divides into; 0: none. */
uint32_t fewest_micro(const Graph *g);

/* ---- Misfit (misfit.c) ---------------------------------------------------------------------- */

/* live_peak: what the check saw. */
void explain_misfit(const Question *q, const Built *built, const LivePeak *live_peak);

#endif
