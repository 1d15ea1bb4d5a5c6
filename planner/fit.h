/* What the search for a plan knows while it goes on: fit.c drives it, fit_trials.c keeps what was
 * tried, fit_chain.c has what chains of blocks bring, fit_settle.c ends it. */
#ifndef GPLAN_FIT_H
#define GPLAN_FIT_H

#include "planner/chain.h"
#include "planner/internal.h"

/* Effort of the search for the smallest plan, about a second for a thousand clusters. */
enum { EFFORT = 1000, EFFORT_PER_CLUSTER = 2 };

/* Steps of the packer for each unit of effort: on any plan, tenths of a second in all where it does
 * not meet its bound at once; on one whose layers are equal again; and on the smallest, where every
 * byte counts. */
enum { PACK_STEPS = 20 * 1000, PACK_SETTLED = 100 * 1000, PACK_SMALLEST = 200 * 1000 };

/* An order that was tried, what it needs when packed, and its cost. Where it was packed is kept:
 * with less time left it would pack larger. */
typedef struct {
    Order order;
    uint64_t arena, peak, floor;
    Packing packing;
    double cost, rest;
    uint64_t budget; /* the smallest that it fits: its arena, or the rung that it was found on */
} Trial;

/* A schedule of a chain of blocks, to be packed. */
typedef struct {
    int depth;
    size_t point;
    int64_t peak;
    double cost;
    uint64_t arena; /* 0: it was not packed yet */
} Link;

/* A schedule of one program. */
typedef struct {
    RematSchedule schedule;
    int64_t peak;
    double cost;
} Start;

typedef struct {
    Arena *arena; /* of all that is found */
    Task task;
    const PlanOptions *options;
    Order given;      /* every cluster once */
    Order unsearched; /* that, with what the hints ask to be computed again */
    RematProgram program[PROGRAMS];
    Chain *chain[BLOCK_DEPTHS];   /* of blocks at depth 1, 2, ...; NULL: none, or another again */
    ARRAY(Start) start[PROGRAMS]; /* schedules to start from */
    size_t early[PROGRAMS];       /* so many of them are from before the ladder */
    ARRAY(Link) link;             /* of all chains, the cheapest first */
    uint64_t persistent;          /* bytes, aligned */
    uint64_t least, least_peak;   /* of the smallest plan, before chains and rungs */
    ARRAY(Trial) trial;
    double begin;
    uint64_t effort; /* spent so far */
    bool cut;
    PlanProgress progress;
} Fit;

/* ---- fit_trials.c ---- */

PlanOptions options_now(const Fit *f); /* with the seconds that are left */
bool is_cut(Fit *f);                   /* by the user, or the seconds are over */
uint64_t full_effort(const Fit *f);
uint64_t pack_effort(const Fit *f, uint64_t steps); /* of the packer, for each unit of effort */

/* Packs the order; only the cost and size of the plan are kept, and the offsets of its buffers. */
Trial *try_order(Fit *f, const Order *order, uint64_t pack_steps, uint64_t capacity);
bool is_less(double a, double b); /* by more than the order of a sum changes it */
/* On cost first, on the rest and the arena then, of those that the budget gets; NULL: there is
 * none.
 */
const Trial *cheapest(const Fit *f, uint64_t budget);
const Trial *smallest_trial(const Fit *f);

void remember(Fit *f, int program, const RematSchedule *schedule);
/* The cheapest start within the budget; if there is none, the smallest. What keeps the hints in
 * the given order is always there. */
const Start *best_start(const Fit *f, int program, uint64_t budget);
const Start *best_of(const Fit *f, int program, uint64_t budget, size_t count); /* the first ones */
/* One program of the order, replaced. */
void adopt(Fit *f, Order *order, int program, const RematSchedule *schedule);

/* ---- fit_settle.c ---- */

/* The order with its occurrences moved back towards the given one, live bytes within the limit:
 * lives that are in order pack tighter. */
Order settle_order(Fit *f, const Order *order, uint64_t limit);
/* The plan of what was tried, its occurrences moved back towards the given order. */
Plan *settle(Fit *f, const Trial *trial);

/* ---- fit_chain.c ---- */

void find_chains(Fit *f);
bool has_chain(const Fit *f);
/* What the chains come to within the budget; where none is, their smallest. */
void remember_chains(Fit *f, uint64_t budget);
/* From the cheapest on, up to the first whose arena is within the budget: that is the cheapest of
 * them all, whatever the budget, and whatever was tried before. Where `all`, all of them: what any
 * budget gets is among them. */
void try_chains(Fit *f, uint64_t budget, bool all);

#endif
