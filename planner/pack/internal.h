/* Inside the packer: the problem as the solvers see it, and what they share.
 *
 * Time is cut into sections, one for each maximal set of buffers alive together: two buffers
 * meet if and only if they share a section, and there are at most as many sections as buffers.
 * Sizes are rounded up to the unit, the largest number that divides every alignment, since the
 * next offset could not use the bytes between; `size - trim` is what was asked for.
 */
#ifndef GPLAN_PACK_INTERNAL_H
#define GPLAN_PACK_INTERNAL_H

#include "frontend/base/arena.h"
#include "planner/pack/pack.h"

#define NOWHERE UINT64_MAX /* an offset that is not known, or not fixed */

typedef struct {
    uint32_t first, last; /* sections, both inclusive */
    uint64_t size, trim;
    uint64_t align; /* a multiple of the unit */
    uint64_t fixed; /* or NOWHERE */
} Item;

typedef struct {
    const PackProblem *problem;
    Arena *arena;
    Item *item;       /* the buffers that have bytes */
    uint32_t *origin; /* item -> buffer */
    uint32_t count, sections;
    uint64_t *load; /* of a section: sum of sizes */
    uint64_t unit;  /* divides every alignment and every rounded size */
    uint64_t step;  /* divides every offset and height worth trying */
    uint64_t bound; /* on the height */
    bool any_fixed;
    uint32_t always; /* so many buffers are no items: alive all the time, they lie below the rest */
    uint32_t *lowest; /* these buffers, from the bottom up */
    uint64_t base;    /* their bytes: loads, offsets, heights and bounds are above it */
} Model;

/* The best packing so far, in items, and what may still be spent on a better one. */
typedef struct {
    const Model *model;
    PackOptions options;
    uint64_t capacity; /* above the base; 0: none */
    uint64_t *offset;
    uint64_t height; /* NOWHERE: nothing yet */
    uint64_t bound;
    uint64_t target;        /* good enough: the capacity or the bound */
    uint64_t effort, limit; /* used, and where the part at hand has to stop */
    double deadline;        /* seconds of the clock, or 0 */
    uint64_t next_look;     /* at the clock, in effort */
    bool out_of_time;
} Pack;

/* Builds the model; a wrong problem leaves NULL and says why in the solution. */
Model *pack_model(Arena *arena, const PackProblem *problem, PackSolution *solution);

/* Counts effort; false when the limit or the seconds are used up. */
bool pack_spend(Pack *pack, uint64_t steps);
static inline bool pack_done(const Pack *pack)
{
    return pack->height <= pack->target;
}

/* A height that is this near its target is worth a local search before the complete one. */
static inline bool pack_near(const Pack *pack, uint64_t height)
{
    return height - pack->target < pack->target / 16;
}

uint64_t pack_height(const Model *model, const uint64_t *offset);
bool pack_offer(Pack *pack, const uint64_t *offset); /* keeps it when it is the best */

static inline uint64_t round_up(uint64_t value, uint64_t unit)
{
    uint64_t rest = value % unit;
    return rest ? value + (unit - rest) : value;
}

/* A small deterministic generator (splitmix64). */
static inline uint64_t pack_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The parts of the portfolio; each offers what it finds. */
void pack_fit_orders(Pack *pack);
void pack_sweep(Pack *pack);
void pack_squeak(Pack *pack, uint32_t rounds);
void pack_search(Pack *pack);

/* The highest top over each section; all operations take the logarithm of the sections. */
typedef struct Skyline Skyline;
Skyline *skyline_new(Arena *arena, uint32_t sections);
uint64_t skyline_max(const Skyline *skyline, uint32_t first, uint32_t last);
void skyline_raise(Skyline *skyline, uint32_t first, uint32_t last, uint64_t top);

/* The gaps between what is alive, for up to `most` pieces taken at once. */
typedef struct Gaps Gaps;
Gaps *gaps_new(Arena *arena, uint32_t most);
void gaps_clear(Gaps *gaps, bool best); /* best fit, or first fit */
/* The first gap that surely holds the size, aligned; returns what to give back, 0: none. */
uint32_t gaps_take(Gaps *gaps, uint64_t size, uint64_t align, uint64_t unit, uint64_t *offset);
void gaps_give(Gaps *gaps, uint32_t piece);

/* Items placed one by one, anywhere they fit, by the order given. */
typedef struct Shelf Shelf;
Shelf *shelf_new(Arena *arena, const Model *model);
void shelf_clear(Shelf *shelf);
void shelf_add(Shelf *shelf, uint32_t item, uint64_t offset);
uint64_t shelf_first_fit(Shelf *shelf, uint32_t item); /* NOWHERE when it would overflow */
uint64_t shelf_best_fit(Shelf *shelf, uint32_t item);
uint64_t shelf_work(const Shelf *shelf); /* steps since it was made */

/* Places all items in the order given; false when the effort ended or offsets overflow. */
bool pack_place(Pack *pack, Shelf *shelf, const uint32_t *order, bool best, uint64_t *offset);

/* Orders for it: the largest first, then as the problem has them. */
typedef enum {
    BY_SIZE,
    BY_AREA,
    BY_WIDTH,
    BY_PEAK_WIDTH, /* the peak an item lives through, then its width */
    BY_PEAK_SIZE,
    FORWARD, /* by the first section */
    BACKWARD,
} PackOrder;
void pack_order(const Model *model, PackOrder by, uint32_t *order);

/* For each item the largest load that it lives through. */
void pack_peaks(Arena *arena, const Model *model, uint64_t *peak);

#endif
