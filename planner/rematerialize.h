/* What was dropped is made again where it is read: the schedule that follows from what is stored.
 *
 * The nodes run in the given order. After node `back`, values that were dropped are gone; a node
 * that reads one has it made again just before, with all that takes and that is gone as well.
 */
#ifndef GPLAN_AGAIN_H
#define GPLAN_AGAIN_H

#include "frontend/base/arena.h"
#include "planner/remat/remat.h"

typedef struct {
    const RematProblem *problem;
    Arena *arena;
    RematId back;          /* the first node of the backward pass */
    const bool *droppable; /* by value */
    const bool *dropped;   /* by node: its droppable values are gone after `back` */
    const bool *free;      /* by value, or NULL: stored whatever else is */
    bool ahead; /* what takes a value that is overwritten, as parameters are, is made before that */
    uint32_t *made, *seen; /* by value: `round` when made again, when read as it was stored */
    uint32_t round;
    RematId now;         /* the node that is visited */
    bool broken;         /* something ran again after what it reads was overwritten */
    ARRAY(RematId) node; /* what runs, in order */
    ARRAY(RematId) stack;
    double cost;  /* of what runs again */
    int64_t kept; /* bytes read as they were stored, those not counted that are free */
} Again;

Again again_new(const RematProblem *problem, RematId back, Arena *arena);
void again_begin(Again *again);            /* nothing has been made again, nothing runs */
void again_visit(Again *again, RematId n); /* makes what it reads; does not run it */
/* All of the nodes. Stands until something else runs. */
RematSchedule again_run(Again *again);

#endif
