/* The complete search, driven: parts and sections from the model, orders that change from run to
 * run, restarts on the sequence of Luby et al. (1993) since run times have heavy tails, and a
 * bisection of the capacity where the bound is not reached.
 */
#include "planner/pack/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TRY ((uint64_t)20 * 1000 * 1000) /* effort for the bound, in the first round */
enum {
    MOST_PARTS = 5000,              /* a larger problem would dive for seconds, and deeply */
    MOST_MEMBERS = 8 * 1000 * 1000, /* of all sections together */
    RUN = 100,                      /* refutations in the shortest run */
};
#define FADING 0.8        /* of the weights, from run to run */
#define URGENCY_POWER 0.3 /* how weights count: more makes a few sections blind to the rest */
#define SNUG 0.3          /* in every second run, as a share of all ranks */

typedef enum { FOUND, REFUTED, STOPPED } Outcome;

typedef struct {
    double key[3]; /* larger goes first */
    uint32_t part;
} Rank;

typedef struct {
    Search search;
    Rank *rank;
    uint64_t *peak, *offset; /* by item */
    uint64_t runs;           /* so far; a try goes on where the last one ended */
} Driver;

typedef struct {
    Item item;
    uint32_t index;
} Sorted;

static int by_life(const void *a, const void *b)
{
    const Sorted *x = a, *y = b;
    if (x->item.first != y->item.first)
        return x->item.first < y->item.first ? -1 : 1;
    if (x->item.last != y->item.last)
        return x->item.last < y->item.last ? -1 : 1;
    if (x->item.size != y->item.size)
        return x->item.size < y->item.size ? -1 : 1;
    if (x->item.align != y->item.align)
        return x->item.align < y->item.align ? -1 : 1;
    if (x->item.trim != y->item.trim)
        return x->item.trim < y->item.trim ? -1 : 1;
    if (x->item.fixed != y->item.fixed)
        return x->item.fixed < y->item.fixed ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool equal(const Item *a, const Item *b)
{
    return a->first == b->first && a->last == b->last && a->size == b->size &&
           a->align == b->align && a->trim == b->trim && a->fixed == b->fixed;
}

static void make_parts(Search *search, const Model *model)
{
    Sorted *sorted = ARENA_ARRAY(search->arena, Sorted, model->count);
    for (uint32_t i = 0; i < model->count; i++)
        sorted[i] = (Sorted){model->item[i], i};
    qsort(sorted, model->count, sizeof *sorted, by_life);
    search->plain = !model->any_fixed;
    uint32_t where = 0, ring = 0;
    for (uint32_t p = 0; p < model->count; p++) {
        const Item *item = &sorted[p].item;
        if (!equal(item, &sorted[ring].item))
            ring = p;
        search->part[p] = (Part){.size = item->size,
                                 .align = item->align,
                                 .first = item->first,
                                 .last = item->last,
                                 .where = where,
                                 .twin = ring,
                                 .item = sorted[p].index};
        if (p > ring)
            search->part[p - 1].twin = p;
        where += item->last - item->first + 1;
        search->plain &= item->align == model->unit && !item->trim;
    }
}

static void make_sections(Search *search)
{
    for (uint32_t p = 0; p < search->parts; p++) {
        const Part *part = &search->part[p];
        for (uint32_t s = part->first; s <= part->last; s++) {
            search->section[s].waiting++;
            search->section[s].crossing += s < part->last;
            search->section[s].rest += part->size;
        }
    }
    uint32_t start = 0, after = 0;
    for (uint32_t s = 0; s < search->sections; s++) {
        search->section[s].start = start;
        start += search->section[s].waiting;
        search->section[s].waiting = 0;
        while (after < search->parts && search->part[after].first <= s)
            after++;
        search->after[s] = after;
    }
    for (uint32_t p = 0; p < search->parts; p++) {
        const Part *part = &search->part[p];
        for (uint32_t s = part->first; s <= part->last; s++) {
            Section *section = &search->section[s];
            search->position[part->where + s - part->first] = section->waiting;
            search->member[section->start + section->waiting++] = p;
        }
    }
}

static void make(Driver *driver, Arena *arena, Pack *pack, size_t members)
{
    const Model *model = pack->model;
    Search *search = &driver->search;
    *driver = (Driver){.search = {.pack = pack, .arena = arena}};
    search->parts = model->count;
    search->sections = model->sections;
    search->random = pack->options.seed;
    search->part = ARENA_ARRAY(arena, Part, model->count);
    search->section = ARENA_ARRAY(arena, Section, model->sections);
    search->after = ARENA_ARRAY(arena, uint32_t, model->sections);
    search->emptied = ARENA_ARRAY(arena, uint32_t, model->sections);
    search->member = ARENA_ARRAY(arena, uint32_t, members);
    search->position = ARENA_ARRAY(arena, uint32_t, members);
    search->range = ARENA_ARRAY(arena, Range, (size_t)model->count + model->sections + 1);
    make_parts(search, model);
    make_sections(search);
    driver->rank = ARENA_ARRAY(arena, Rank, model->count);
    driver->offset = ARENA_ARRAY(arena, uint64_t, model->count);
    driver->peak = ARENA_ARRAY(arena, uint64_t, model->count);
    pack_peaks(arena, model, driver->peak);
}

/* Everything waits again, under a new capacity. */
static void reset(Search *search, uint64_t capacity)
{
    const Item *item = search->pack->model->item;
    search->capacity = capacity;
    for (uint32_t p = 0; p < search->parts; p++) {
        Part *part = &search->part[p];
        const Item *from = &item[part->item];
        part->placed = false;
        part->low = 0;
        part->high = (capacity - (from->size - from->trim)) / from->align * from->align;
        if (from->fixed != NOWHERE)
            part->low = part->high = from->fixed;
    }
    for (uint32_t s = 0; s < search->sections; s++) {
        Section *section = &search->section[s];
        uint64_t trim = 0, floor = NOWHERE;
        uint32_t choices = 0;
        for (uint32_t i = 0; i < section->waiting; i++) {
            const Part *part = &search->part[search->member[section->start + i]];
            if (item[part->item].trim > trim)
                trim = item[part->item].trim;
            if (part->low < floor) {
                floor = part->low;
                choices = 0;
            }
            choices += part->low == floor;
        }
        section->floor = floor;
        section->choices = choices;
        section->ceiling = capacity + trim;
        section->weight *= FADING;
        section->urgency = pow(1 + section->weight, URGENCY_POWER);
    }
}

static int by_key(const void *a, const void *b)
{
    const Rank *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] > y->key[k] ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* The order of the parts for one run. Noise goes by the life span, so that equal spans stay
 * together; how much of it is best differs from problem to problem, so it varies. */
static void shuffle(Driver *driver, uint64_t run)
{
    static const double noise[] = {0.05, 0.5, 0.2, 1, 0.1};
    Search *search = &driver->search;
    const Model *model = search->pack->model;
    double most = search->pack->options.skip & PACK_NO_NOISE ? 0 : noise[run % 5];
    uint64_t salt = pack_random(&search->random);
    for (uint32_t p = 0; p < search->parts; p++) {
        const Part *part = &search->part[p];
        const PackBuffer *buffer = &model->problem->buffer[model->origin[part->item]];
        uint64_t span = salt ^ ((uint64_t)part->first << 32 | part->last);
        double shake = 1 + most * (0x1p-52 * (double)(pack_random(&span) >> 11) - 1);
        double width = (double)buffer->upper - (double)buffer->lower;
        double area = width * (double)part->size;
        double sections = part->last - part->first + 1;
        double peak = (double)driver->peak[part->item];
        Rank by[] = {{{peak, width * shake, area}, p},
                     {{width * shake, area, 0}, p},
                     {{sections * shake, area, 0}, p}};
        driver->rank[p] = by[run % 3];
    }
    qsort(driver->rank, search->parts, sizeof *driver->rank, by_key);
    for (uint32_t i = 0; i < search->parts; i++)
        search->part[driver->rank[i].part].rank = (float)(search->parts - i);
    search->snug = run % 2 ? (float)(SNUG * search->parts) : 0;
    search->steps += 20 * (uint64_t)search->parts;
}

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...; i counts from 1. */
static uint64_t luby(uint64_t i)
{
    for (uint64_t k = 1;;) {
        if (i + 1 == (uint64_t)1 << k)
            return (uint64_t)1 << (k - 1);
        if (i + 1 > (uint64_t)1 << k) {
            k++;
        } else {
            i -= ((uint64_t)1 << (k - 1)) - 1;
            k = 1;
        }
    }
}

static Outcome try_capacity(Driver *driver, uint64_t capacity, uint64_t effort)
{
    Search *search = &driver->search;
    Pack *pack = search->pack;
    uint64_t left = pack->options.effort > pack->effort ? pack->options.effort - pack->effort : 0;
    pack->limit = pack->effort + (effort < left ? effort : left);
    Outcome outcome = STOPPED;
    while (outcome == STOPPED && pack_spend(pack, search->steps)) {
        uint64_t run = driver->runs++;
        search->steps = 0;
        shuffle(driver, run);
        reset(search, capacity);
        bool restart = !(pack->options.skip & PACK_NO_RESTART);
        search->limit = restart ? RUN * luby(run + 1) : UINT64_MAX;
        outcome = search_run(search) ? FOUND : search->stopped ? STOPPED : REFUTED;
    }
    if (outcome == FOUND) {
        for (uint32_t p = 0; p < search->parts; p++)
            driver->offset[search->part[p].item] = search->part[p].low;
        search_undo(search, 0);
        pack_offer(pack, driver->offset);
    }
    uint64_t next = (capacity / pack->model->step + 1) * pack->model->step;
    if (outcome == REFUTED && pack->bound < next)
        pack->bound = next;
    pack->limit = pack->options.effort;
    return outcome;
}

/* Rounds that try harder and harder: the bound itself, then a bisection between it and the best
 * height, where a try that stops counts as refuted until the next round. */
static void minimise(Driver *driver)
{
    Pack *pack = driver->search.pack;
    uint64_t step = pack->model->step, effort = FIRST_TRY;
    bool bisect = !(pack->options.skip & PACK_NO_BISECT) && pack->height != NOWHERE;
    if (!bisect)
        effort = UINT64_MAX;
    for (; !pack_done(pack) && pack_spend(pack, 0); effort *= 4) {
        uint64_t hard = pack->bound;
        if (try_capacity(driver, hard, effort) == FOUND || !bisect)
            return;
        while (pack->height > hard + step && pack->height > pack->bound && pack_spend(pack, 0)) {
            uint64_t middle = hard + (pack->height - hard) / 2 / step * step;
            if (middle == hard)
                middle = hard + step;
            if (try_capacity(driver, middle, effort / 4) != FOUND)
                hard = middle;
        }
        if (pack->height == pack->bound)
            return;
    }
}

void pack_search(Pack *pack)
{
    const Model *model = pack->model;
    size_t members = 0;
    for (uint32_t i = 0; i < model->count; i++)
        members += model->item[i].last - model->item[i].first + 1;
    if (model->count > MOST_PARTS || members > MOST_MEMBERS)
        return;
    Arena *arena = arena_new();
    Driver driver;
    make(&driver, arena, pack, members);
    if (pack->target > pack->bound)
        try_capacity(&driver, pack->target, UINT64_MAX);
    else
        minimise(&driver);
    arena_free(arena);
}
