/* Shared by the files of the rematerialization search; included nowhere else. */
#ifndef GPLAN_REMAT_INTERNAL_H
#define GPLAN_REMAT_INTERNAL_H

#include "frontend/base/arena.h"
#include "planner/remat/remat.h"

/* ---- the problem as the search sees it (remat_model.c) ----
 *
 * Only tracked values count: not pinned, or pinned with a killer (then with size 0). Costs are
 * integers, COST_ONE for the cost of all nodes once, so that undoing a move is exact. */
#define COST_ONE ((int64_t)1 << 40)

typedef struct {
    int32_t *start, *item; /* the items of i: item[start[i] .. start[i + 1]) */
} RematTable;

typedef struct {
    const RematProblem *problem;
    Arena *arena;
    int32_t nodes, values;
    int64_t *cost, *workspace; /* by node */
    bool *once;                /* by node */
    int64_t *size;             /* by value */
    int32_t *producer;         /* by value; -1: there from the start */
    bool *output;              /* by value */
    bool *watched;             /* by value: its deaths or lives matter at some slot */
    RematTable reads, writes;  /* by node: tracked values, killed ones not in reads */
    RematTable kills;          /* by node: values whose bytes it overwrites */
    RematTable overlays;       /* by node: indices into problem->in_place */
    RematTable drops;          /* by node: values that must not live across it */
    RematTable dropped;        /* by value: the nodes of drops */
} RematModel;

RematModel *remat_model(const RematProblem *problem, Arena *arena);

/* ---- a schedule under edit (remat_state.c) ----
 *
 * Occurrences sit in slots with free slots between them, so that most insertions move nothing.
 * Each value has its events (made, read, killed) sorted by slot; an edit looks only at the
 * neighbours of an event and adds the size to the range of slots whose live set changed. The
 * profile keeps maxima by block of slots with one pending addition per block; the penalty is the
 * sum over blocks of the bytes above the budget. */
enum { EVENT_READ, EVENT_MADE, EVENT_KILL };

typedef struct {
    int32_t *at; /* sorted; of a value: slot << 2 | kind, of a node: slot */
    int32_t count, capacity;
    int32_t kills; /* of a value: events of that kind */
} RematEvents;

typedef struct {
    int32_t node, from, to; /* from < 0: insert; to < 0: remove; else move */
} RematEdit;

typedef struct {
    const RematModel *model;
    Arena *arena;
    size_t capacity; /* slots allocated */
    int32_t slots, block_shift, blocks;
    int32_t *at;                        /* node in the slot, or -1 */
    int64_t *live, *pending, *top;      /* by slot, by block, by block */
    int64_t *saved;                     /* by slot: bytes saved by in-place, less hint penalties */
    RematEvents *events, *runs;         /* of values, of nodes */
    int32_t *repeated, *repeated_index; /* nodes with more than one occurrence */
    int32_t repeats;
    int64_t budget, penalty, extra; /* extra: cost of occurrences beyond the first */
    int32_t length, bad;            /* bad: values read before they are made or after a kill */
    uint64_t ticks;                 /* effort so far, in events touched */
    ARRAY(RematEdit) journal;       /* since the last commit */
    ARRAY(RematEdit) log;           /* committed since the last layout */
} RematState;

RematState *remat_state(const RematModel *model, int64_t budget, Arena *arena);
void remat_layout(RematState *state, const RematId *node, size_t count); /* evenly spread */
void remat_set_budget(RematState *state, int64_t budget);
int64_t remat_state_peak(const RematState *state);

void remat_insert(RematState *state, int32_t node, int32_t slot); /* the slot is free */
void remat_remove(RematState *state, int32_t slot);
void remat_shift(RematState *state, int32_t from, int32_t to); /* `to` is free */
void remat_undo(RematState *state);                            /* back to the last commit */
void remat_commit(RematState *state);

/* Parts of an edit that the layout needs too. */
void remat_list_insert(RematState *state, RematEvents *list, int32_t index, int32_t item);
int remat_is_bad(const RematState *state, int32_t value);
void remat_refresh(RematState *state, int32_t slot); /* savings of in-place at the slot */
int64_t remat_block_top(const RematState *state, int32_t block);
#define FREE_SLOT ((int64_t)1 << 60) /* taken off the profile where no node runs */

static inline int32_t event_slot(int32_t event)
{
    return event >> 2;
}

static inline int32_t event_kind(int32_t event)
{
    return event & 3;
}

/* Index of the first event at or after the slot. */
static inline int32_t remat_event_index(const RematEvents *events, int32_t slot)
{
    const int32_t *at = events->at;
    int32_t count = events->count, key = slot << 2, low = 0;
    while (count > 8) {
        int32_t half = count >> 1;
        bool after = at[low + half] < key;
        low = after ? low + half + 1 : low;
        count = after ? count - half - 1 : half;
    }
    for (; count && at[low] < key; count--)
        low++;
    return low;
}

static inline int64_t live_at(const RematState *state, int32_t slot)
{
    return state->live[slot] + state->pending[slot >> state->block_shift];
}

/* ---- random numbers: the same everywhere, no libm ---- */
typedef struct {
    uint64_t x;
} RematRandom;

static inline uint64_t random_bits(RematRandom *random) /* splitmix64 */
{
    uint64_t z = random->x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline int32_t random_below(RematRandom *random, int32_t bound)
{
    return (int32_t)((random_bits(random) >> 32) * (uint64_t)bound >> 32);
}

/* ---- moves (remat_moves.c): each edits the state; the caller commits or undoes ---- */
typedef struct {
    RematState *state;
    RematRandom random;
    int32_t order_share; /* of the moves, in percent, those that change the order only */
    int32_t limit;       /* occurrences not to exceed */
} RematMover;

bool remat_move(RematMover *mover); /* false: nothing was done */
/* Takes the occurrence at `slot` to just before *target, which then names the same place. Gives
 * the slot where it is now. */
int32_t remat_lift(RematState *state, int32_t slot, int32_t *target);

/* ---- initial orders (remat_order.c) ---- */
enum { REMAT_ORDERS = 4 };
RematSchedule remat_order(const RematModel *model, int kind, Arena *arena);
RematTable remat_readers(const RematModel *model, Arena *arena); /* by value, tracked reads */

/* ---- equal layers (layers.c) ---- */
typedef struct {
    int32_t begin, period, times; /* of `period` nodes each */
} RematLayers;

size_t remat_find_layers(const RematProblem *problem, RematLayers **layers, Arena *arena);

/* ---- bounds (remat_bound.c): of the extra cost, in COST_ONE; the floor above base ---- */
int64_t remat_find_bounds(const RematModel *model, int64_t budget, int64_t *floor);
/* What one node needs while it runs, at most: a floor that is found in linear time. */
int64_t remat_largest_step(const RematModel *model);

/* ---- annealing (remat_anneal.c), driven in rounds by remat_solve.c ---- */
enum { REMAT_TICKS = 10000, REMAT_LOG_TABLE = 1024 }; /* ticks of one unit of effort */

typedef struct {
    const RematModel *model;
    const RematOptions *options;
    RematState *state;
    RematMover mover;
    Arena *arena;
    bool shrink;          /* looking for the least peak: the budget follows the best */
    int64_t floor, bound; /* of the peak above base, of the extra cost in COST_ONE */
    double price;         /* of a byte above the budget, in COST_ONE */
    double base_cost;     /* of every node once */
    double log_table[REMAT_LOG_TABLE];

    bool fits;          /* there is a best: in `best`, or marked in the log */
    RematSchedule best; /* within the budget */
    int64_t best_extra, best_peak;
    RematSchedule nearest; /* with the smallest peak at the end of a round */
    int64_t nearest_peak;
    RematId *kept; /* the slots that the log of the state starts from */
    size_t kept_slots, kept_capacity, best_capacity;
    size_t mark; /* the best is `kept` and this much of the log, when marked */
    bool marked;

    double begin; /* seconds */
    uint64_t ticks_total;
    RematStop stop;
    bool stopped;
} RematSearch;

typedef struct {
    double hot, cold; /* temperatures, in mean costs of a node */
    double price;     /* of the whole budget, in costs of all nodes */
    double agility;   /* how far the price can move in the round, as a power of e */
} RematRecipe;

void remat_anneal_begin(RematSearch *search); /* once, when the fields up to base_cost are set */
void remat_load(RematSearch *search, const RematSchedule *schedule);
void remat_anneal(RematSearch *search, const RematRecipe *recipe, uint64_t ticks);
void remat_write_best(RematSearch *search); /* brings `best` up to date */
double remat_cost(const RematSearch *search, int64_t extra);

#endif
