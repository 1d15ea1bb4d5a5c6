/* The complete search, propagation: what follows from placing or raising a part, and undoing it.
 *
 * Floors need no fixpoint: placing a part raises the low of its neighbours, and a floor is a
 * least low, so it rises only when its last candidate has left.
 */
#include "planner/pack/search.h"

#include <string.h>

static void refute(Search *search, uint32_t section)
{
    search->refutations++;
    if (!(search->pack->options.skip & PACK_NO_WEIGHT))
        search->section[section].weight += 1;
}

static void note(Search *search, uint64_t old, uint32_t index, UndoKind kind)
{
    search->trail = arena_grow(search->arena, search->trail, search->trailed, &search->trail_room,
                               sizeof *search->trail);
    search->trail[search->trailed++] = (Undo){old, index, kind};
}

/* The new floor of a section; false when what it waits for has no room above it. */
static bool refloor(Search *search, uint32_t s)
{
    Section *section = &search->section[s];
    const uint32_t *waiting = search->member + section->start;
    uint64_t floor = NOWHERE;
    uint32_t choices = 0;
    for (uint32_t i = 0; i < section->waiting; i++) {
        uint64_t low = search->part[waiting[i]].low;
        if (low < floor) {
            floor = low;
            choices = 0;
        }
        choices += low == floor;
    }
    search->steps += section->waiting;
    note(search, section->floor, s, UNDO_FLOOR);
    section->floor = floor;
    section->choices = choices;
    return floor <= section->ceiling && section->ceiling - floor >= section->rest;
}

static bool refloor_emptied(Search *search, bool fine)
{
    while (search->empty) {
        uint32_t s = search->emptied[--search->empty];
        if (fine && search->section[s].waiting && !refloor(search, s)) {
            refute(search, s);
            fine = false;
        }
    }
    return fine;
}

static void lose_choice(Search *search, uint32_t s, uint64_t low)
{
    Section *section = &search->section[s];
    if (section->floor == low && --section->choices == 0)
        search->emptied[search->empty++] = s;
}

static bool set_low(Search *search, uint32_t p, uint64_t low)
{
    Part *part = &search->part[p];
    note(search, part->low, p, UNDO_LOW);
    for (uint32_t s = part->first; s <= part->last; s++)
        lose_choice(search, s, part->low);
    part->low = low;
    search->steps += part->last - part->first + 1;
    return low + search->lifted <= part->high;
}

/* Takes a part out of the waiting ones: it changes places with the last of them, so that
 * undoing in reverse order only has to count up again. */
static void leave(Search *search, uint32_t p, uint64_t size)
{
    Part *part = &search->part[p];
    part->placed = true;
    for (uint32_t s = part->first; s <= part->last; s++) {
        Section *section = &search->section[s];
        uint32_t *member = search->member + section->start;
        uint32_t *place = &search->position[part->where + s - part->first];
        uint32_t end = --section->waiting, moved = member[end];
        const Part *other = &search->part[moved];
        member[*place] = moved;
        search->position[other->where + s - other->first] = *place;
        member[end] = p;
        *place = end;
        section->rest -= size;
        section->crossing -= s < part->last;
        lose_choice(search, s, part->low);
    }
    search->steps += 2 * (part->last - part->first + 1);
}

static void rejoin(Search *search, uint32_t p, uint64_t size)
{
    Part *part = &search->part[p];
    part->placed = false;
    for (uint32_t s = part->first; s <= part->last; s++) {
        Section *section = &search->section[s];
        section->waiting++;
        section->rest += size;
        section->crossing += s < part->last;
        section->choices += section->floor == part->low;
    }
}

void search_undo(Search *search, size_t mark)
{
    while (search->trailed > mark) {
        Undo undo = search->trail[--search->trailed];
        Part *part = &search->part[undo.index];
        switch (undo.kind) {
        case UNDO_FLOOR:
            search->section[undo.index].floor = undo.old;
            search->section[undo.index].choices = 0;
            break;
        case UNDO_LOW:
            part->low = undo.old;
            for (uint32_t s = part->first; s <= part->last; s++)
                search->section[s].choices += search->section[s].floor == undo.old;
            break;
        case UNDO_PLACE:
            rejoin(search, undo.index, part->size);
            break;
        case UNDO_LIFT:
            part->low = undo.old;
            rejoin(search, undo.index, 0);
            break;
        }
    }
}

/* Walks the waiting neighbours of a part: those alive in its first section, then those that
 * begin later in its life, which stand together in the array. */
typedef struct {
    const Search *search;
    const uint32_t *member, *member_end;
    uint32_t next, end;
} Walk;

static Walk walk_start(Search *search, uint32_t p)
{
    const Part *part = &search->part[p];
    const Section *section = &search->section[part->first];
    const uint32_t *member = search->member + section->start;
    search->steps += section->waiting + search->after[part->last] - search->after[part->first];
    return (Walk){search, member, member + section->waiting, search->after[part->first],
                  search->after[part->last]};
}

static inline bool walk_next(Walk *walk, uint32_t *neighbour)
{
    if (walk->member < walk->member_end) {
        *neighbour = *walk->member++;
        return true;
    }
    while (walk->next < walk->end && walk->search->part[walk->next].placed)
        walk->next++;
    *neighbour = walk->next;
    return walk->next++ < walk->end;
}

bool search_place(Search *search, uint32_t p)
{
    const Part *part = &search->part[p];
    uint64_t top = part->low + part->size;
    leave(search, p, part->size);
    note(search, 0, p, UNDO_PLACE);
    Walk walk = walk_start(search, p);
    bool fine = true;
    for (uint32_t q; fine && walk_next(&walk, &q);) {
        const Part *other = &search->part[q];
        if (other->low >= top)
            continue;
        fine = set_low(search, q, round_up(top, other->align));
        if (!fine)
            refute(search, part->first > other->first ? part->first : other->first);
    }
    return refloor_emptied(search, fine);
}

/* A packing can be pushed down until each part rests on another. So a part that does not lie on
 * the floor is no lower than the lowest top of a neighbour not yet placed. Its twins could
 * change places with it, so they rise too. */
bool search_raise(Search *search, uint32_t p, uint32_t section)
{
    const Part *part = &search->part[p];
    uint64_t low = NOWHERE, floor = part->low;
    Walk walk = walk_start(search, p);
    for (uint32_t q; walk_next(&walk, &q);) {
        uint64_t top = search->part[q].low + search->part[q].size;
        if (q != p && top < low)
            low = top;
    }
    bool fine = low != NOWHERE && low <= part->high;
    if (fine) {
        low = round_up(low, part->align);
        uint32_t q = p;
        do {
            if (!search->part[q].placed && search->part[q].low == floor)
                fine &= set_low(search, q, low);
            q = search->part[q].twin;
        } while (q != p);
    }
    if (!fine)
        refute(search, section);
    return refloor_emptied(search, fine);
}

/* What spans a whole component may as well lie on top of it: the others move down by its size.
 * It no longer waits, but its size stays in `rest`, so the sections keep room for it. */
bool search_lift(Search *search, Range range)
{
    const Section *section = &search->section[range.first];
    search->steps += section->waiting;
    for (uint32_t i = 0; i < section->waiting;) {
        uint32_t p = search->member[section->start + i];
        Part *part = &search->part[p];
        if (part->first != range.first || part->last != range.last) {
            i++;
            continue;
        }
        leave(search, p, 0);
        note(search, part->low, p, UNDO_LIFT);
        search->lifted += part->size;
        part->low = part->high + part->size - search->lifted;
    }
    return refloor_emptied(search, true);
}
