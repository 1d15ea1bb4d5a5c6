/* The complete search, branching: which section, which part, and what falls apart.
 *
 * A state that was refuted once is remembered by its hash, across restarts too: the same parts
 * waiting with the same lows under the same ceiling. Two different states would have to share
 * 64 bits to be taken for one another.
 */
#include "planner/pack/search.h"

enum { REMEMBERED = 1 << 17 };

/* Among the floors that are lower than those beside them, the section with the fewest choices
 * for its weight (dom/wdeg: Boussemart et al., ECAI 2004); slack is one choice more. */
static void choose_in(const Search *search, Range valley, uint32_t *at, double *least)
{
    for (uint32_t s = valley.first; s <= valley.last; s++) {
        const Section *section = &search->section[s];
        bool slack = section->ceiling - section->floor > section->rest;
        double score = (section->choices + slack) / section->urgency;
        if (*least < 0 || score < *least ||
            (score == *least && section->floor < search->section[*at].floor)) {
            *least = score;
            *at = s;
        }
    }
}

static bool choose_section(Search *search, Range range, uint32_t *at)
{
    const Section *section = search->section;
    double least = -1;
    for (uint32_t s = range.first, e; s <= range.last; s = e + 1) {
        e = s;
        if (!section[s].waiting)
            continue;
        uint64_t floor = section[s].floor;
        bool valley = s == range.first || !section[s - 1].crossing || section[s - 1].floor > floor;
        while (e < range.last && section[e].crossing && section[e + 1].floor == floor)
            e++;
        if (e < range.last && section[e].crossing && section[e + 1].floor < floor)
            valley = false;
        if (valley)
            choose_in(search, (Range){s, e}, at, &least);
    }
    search->steps += (range.last - range.first) / 2 + 1;
    return least >= 0;
}

/* Walls that a part would touch, and walls that it would be level with. */
static uint32_t contacts(const Search *search, const Part *part)
{
    const Section *section = search->section;
    uint64_t left = NOWHERE, right = NOWHERE, top = part->low + part->size;
    if (part->first && section[part->first - 1].waiting)
        left = section[part->first - 1].floor;
    if (part->last + 1 < search->sections && section[part->last + 1].waiting)
        right = section[part->last + 1].floor;
    return (uint32_t)((left > part->low) + (right > part->low) + (left == top) + (right == top));
}

static uint32_t choose_part(Search *search, uint32_t s)
{
    const Section *section = &search->section[s];
    const uint32_t *waiting = search->member + section->start;
    uint32_t best = UINT32_MAX;
    float most = 0;
    for (uint32_t i = 0; i < section->waiting; i++) {
        const Part *part = &search->part[waiting[i]];
        if (part->low != section->floor)
            continue;
        float score = part->rank;
        if (search->snug > 0)
            score += search->snug * (float)contacts(search, part);
        if (best == UINT32_MAX || score > most || (score == most && waiting[i] < best)) {
            best = waiting[i];
            most = score;
        }
    }
    search->steps += section->waiting;
    return best;
}

static bool solve(Search *search, Range range);

/* Cuts the range where no waiting part crosses; the narrowest component goes first, as the one
 * refuted soonest. */
static bool solve_components(Search *search, Range range)
{
    uint32_t base = search->ranges;
    bool split = !(search->pack->options.skip & PACK_NO_SPLIT);
    search->steps += (range.last - range.first) / 2 + 1;
    for (uint32_t s = range.first, e; s <= range.last; s = e + 1) {
        e = s;
        if (!search->section[s].waiting)
            continue;
        while (e < range.last && (search->section[e].crossing || !split))
            e++;
        search->range[search->ranges++] = (Range){s, e};
    }
    bool fine = true;
    while (fine && search->ranges > base) {
        uint32_t narrowest = base;
        for (uint32_t i = base; i < search->ranges; i++) {
            Range a = search->range[i], b = search->range[narrowest];
            if (a.last - a.first < b.last - b.first)
                narrowest = i;
        }
        Range next = search->range[narrowest];
        search->range[narrowest] = search->range[--search->ranges];
        fine = solve(search, next);
    }
    search->ranges = base;
    return fine;
}

static bool go_on(Search *search)
{
    if (search->refutations >= search->limit)
        search->stopped = true;
    if (search->steps > 20000) {
        if (!pack_spend(search->pack, search->steps))
            search->stopped = true;
        search->steps = 0;
    }
    return !search->stopped;
}

static bool branch(Search *search, Range range)
{
    for (uint32_t section = 0; choose_section(search, range, &section);) {
        uint32_t part = choose_part(search, section);
        size_t mark = search->trailed;
        if (search_place(search, part) && solve_components(search, range))
            return true;
        search_undo(search, mark);
        if (!go_on(search) || !search_raise(search, part, section))
            return false;
    }
    return true;
}

static uint64_t state_hash(Search *search, Range range)
{
    uint64_t hash = (search->capacity - search->lifted) * 0x9e3779b97f4a7c15u;
    uint32_t begin = range.first ? search->after[range.first - 1] : 0;
    uint32_t end = search->after[range.last];
    for (uint32_t p = begin; p < end; p++) {
        const Part *part = &search->part[p];
        if (part->placed)
            continue;
        uint64_t mixed = (part->low + p + 1) * (2 * (uint64_t)p + 0xbf58476d1ce4e5b9u);
        hash += (mixed ^ (mixed >> 29)) * 0x94d049bb133111ebu;
    }
    search->steps += (end - begin) / 4;
    return hash ^ (hash >> 32);
}

static bool solve(Search *search, Range range)
{
    uint64_t hash = state_hash(search, range), *known = &search->refuted[hash % REMEMBERED];
    if (*known == hash)
        return false;
    size_t mark = search->trailed;
    uint64_t lifted = search->lifted;
    bool fine = (!search->plain || search_lift(search, range)) && branch(search, range);
    search->lifted = lifted;
    if (!fine) {
        search_undo(search, mark);
        if (!search->stopped)
            *known = hash;
    }
    return fine;
}

bool search_run(Search *search)
{
    if (!search->refuted)
        search->refuted = ARENA_ARRAY(search->arena, uint64_t, REMEMBERED);
    search->stopped = false;
    search->ranges = 0;
    search->lifted = 0;
    search->refutations = 0;
    if (solve_components(search, (Range){0, search->sections - 1}))
        return true;
    search_undo(search, 0);
    return false;
}
