/* What the parts of choose share: the candidates, and the plans that were tried of them. */
#ifndef GPLAN_CHOOSE_H
#define GPLAN_CHOOSE_H

#include "planner/internal.h"

/* A graph, shared by the choices that differ in epilogues alone. */
typedef struct {
    Arena *arena;
    Graph *graph;
    uint32_t users; /* candidates that may still be planned, and plans that are kept */
} Lowered;

typedef struct {
    Choice choice;
    Lowered *lowered; /* NULL: not yet, or not any more */
    Clusters *clusters;
    double least; /* no plan of it costs less, in seconds; its own once it was built */
    double once;  /* then: with each cluster once; no more micro-batches cost less */
    bool built;
    bool gone; /* the model cannot be lowered so, or that would change nothing */
    bool tried, fits;
    bool hopeless;     /* no plan of it is within the budget: it was not searched */
    uint64_t floor;    /* then: no plan of it is smaller */
    uint64_t smallest; /* of its plans, where it was searched for; 0 */
    double cost;       /* of the plan that was tried */
} Candidate;

/* A candidate that was planned. */
typedef struct {
    Arena *arena; /* of the plan; NULL: no plan */
    Lowered *lowered;
    Clusters *clusters;
    Plan *plan;
    Choice choice;
    Search search; /* of this candidate alone */
} ChoiceTrial;

typedef struct {
    const Model *model;
    const Target *target;
    const PlanOptions *options;
    Diag *diag; /* of the first graph; the others are lowered quietly: NULL */
    Arena *arena;
    ARRAY(Candidate) candidate;
    double least_cost;     /* of the model as written; 0: unknown */
    double bound;          /* no plan of what was tried costs less */
    bool cut;              /* something was left untried */
    double begin, seconds; /* until it ends; 0: there is no limit */
    int64_t batch;
    bool by_size;    /* the smallest is looked for, whatever it costs */
    bool micro_open; /* micro-batches are a last resort; see Built */
    bool resorted;   /* to them */
    bool narrowed;   /* bf16 is among the candidates: the very last */
    Message coupled;
} Chooser;

bool choose_stopped(const Chooser *s);
double choose_seconds(const Chooser *s); /* that are left; 0: there is no limit */
__attribute__((format(printf, 2, 3))) void choose_say(const Chooser *s, const char *format, ...);

/* choose_candidates.c: the first, which is lowered at once; what else may be chosen; micro-batches,
 * and then bf16, as a last resort (false: there are none any more); the one that is next of those
 * that are open, lowered where `so` (NONE: none left). */
void candidates_begin(Chooser *s);
void candidates_list(Chooser *s);
bool candidates_resort(Chooser *s);
Id candidates_next(Chooser *s, bool so);
size_t candidates_open(const Chooser *s);
void candidate_lower(Chooser *s, Id id);
void candidate_close(Candidate *c); /* it will not be planned again */
void lowered_release(Lowered *lowered);

/* choose_trials.c: the smallest plan of the candidate that differs in epilogues alone, 0: it is not
 * known; the best plan of them all, which leaves what is known of all of them in s->bound and
 * s->cut. */
uint64_t trials_rival(const Chooser *s, Id id);
ChoiceTrial trials_best(Chooser *s);

/* choose_reasons.c: why the choice of the best is as it is, from what was tried. */
Reasons reasons_state(const Chooser *s, const ChoiceTrial *best);

/* What extra time is counted from. */
double choose_least_cost(Chooser *s);
Chooser choose_begin(const Model *model, const Target *target, const PlanOptions *options,
                     Diag *diag);
void choose_end(Chooser *s);

#endif
