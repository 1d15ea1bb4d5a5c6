/* Inside the complete search: its state, shared by the files that propagate (pack_search.c),
 * branch (pack_branch.c) and restart (pack_restart.c).
 *
 * Is there a packing of a given capacity? Parts are placed bottom up. `low` is the least offset a
 * part can still have; the floor of a section is the least low of the parts it waits for. Where
 * a floor is lower than those beside it, every part that could rest on it does so: one of them
 * does, or the floor is wasted. A section is refuted when its floor and what it waits for exceed
 * the capacity.
 */
#ifndef GPLAN_PACK_SEARCH_H
#define GPLAN_PACK_SEARCH_H

#include "planner/pack/internal.h"

/* An item of the search; parts are sorted by their first section. */
typedef struct {
    uint64_t low, high; /* offsets it can still have; low is its offset once placed */
    uint64_t size, align;
    uint32_t first, last;
    uint32_t where; /* its places in the sections' member lists: position[where + s - first] */
    uint32_t twin;  /* the next part that equals it, in a ring */
    uint32_t item;
    float rank; /* larger is tried first */
    bool placed;
} Part;

typedef struct {
    uint64_t floor;          /* least low of the parts waiting */
    uint64_t ceiling;        /* the capacity, and what the topmost part need not be rounded up */
    uint64_t rest;           /* sum of the sizes waiting */
    uint32_t choices;        /* waiting parts with low == floor */
    uint32_t start, waiting; /* members; the first `waiting` of them are not placed */
    uint32_t crossing;       /* waiting parts that also live in the next section */
    double weight;           /* refutations it made, older ones fading */
    double urgency;          /* from the weight, for one run */
} Section;

typedef enum { UNDO_LOW, UNDO_FLOOR, UNDO_PLACE, UNDO_LIFT } UndoKind;

typedef struct {
    uint64_t old;
    uint32_t index;
    UndoKind kind;
} Undo;

typedef struct {
    uint32_t first, last; /* sections */
} Range;

typedef struct {
    Pack *pack;
    Arena *arena;
    uint64_t capacity;
    Part *part;
    Section *section;
    uint32_t *member, *position;
    uint32_t *after; /* section -> the first part that begins later */
    uint32_t parts, sections;
    uint32_t *emptied, empty; /* sections whose floor has no candidate left */
    Undo *trail;
    size_t trailed, trail_room;
    Range *range; /* components still to solve, on the way down */
    uint32_t ranges;
    uint64_t *refuted; /* hashes of states known to have no solution */
    uint64_t lifted;   /* taken from the capacity by parts that span the component at hand */
    uint64_t refutations, limit; /* of this run */
    uint64_t steps;              /* not yet counted as effort */
    uint64_t random;
    float snug;   /* how much a candidate gains by each wall it touches or levels with */
    bool plain;   /* no fixed offsets, one alignment, no trims: packings may be reordered */
    bool stopped; /* by the limit or the effort */
} Search;

/* pack_search.c: each says false when it refutes, with everything to be undone by the caller. */
bool search_place(Search *search, uint32_t part); /* at its low, which is flat */
bool search_raise(Search *search, uint32_t part, uint32_t section);
bool search_lift(Search *search, Range range); /* parts that span the range go to its top */
void search_undo(Search *search, size_t mark);

/* pack_branch.c */
bool search_run(Search *search); /* false: none, or stopped */

#endif
