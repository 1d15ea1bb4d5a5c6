/* What the command is asked, and what it answers beside a program: the largest value of a parameter
 * that fits, a table of budgets, why a model does not fit. Each takes plans of its own, by choose.
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

/* ---- The largest value (largest.c) ---------------------------------------------------------- */

/* How large a parameter can be. */
typedef struct {
    int64_t value; /* the largest that was seen to fit the budget; 0: none was */
    int64_t next;  /* the next one that the model can be planned with; 0: there is none near */
    uint64_t need; /* the smallest arena found for that */
    int64_t least; /* the smallest that the model can be planned with; 0: there is none near */
    bool cut;      /* the search ended early, so others may fit */
} Largest;

/* From the value that the parameter has now. Bisects with little effort; `sure`: then looks around
 * with the effort asked for, and finds the next one. */
Largest largest_value(const Question *q, const char *name, int64_t now, bool sure);

/* ---- The answers (answers.c) ---------------------------------------------------------------- */

int answer_max(const Question *q);
int answer_pareto(const Question *q);
int answer_graph(const Question *q); /* a drawing of the model, which asks for no plan */
/* live_peak: what the check saw. */
void explain_misfit(const Question *q, const Built *built, const LivePeak *live_peak);

#endif
