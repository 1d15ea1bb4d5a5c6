/* Problem to Model: checks the buffers, finds the sections, the loads and the lower bound. */
#include "planner/pack/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t time;
    uint32_t item;
    uint32_t opens; /* 0 sorts first: at equal times buffers die before others are born */
} Event;

static int by_time(const void *a, const void *b)
{
    const Event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->opens != y->opens)
        return x->opens < y->opens ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static const char *fault_of(const PackBuffer *buffer)
{
    uint64_t align = buffer->align ? buffer->align : 1;
    if (buffer->lower >= buffer->upper)
        return "its lifetime is empty";
    if (buffer->size > PACK_MAX_BYTES)
        return "its size is too large";
    if (align > PACK_MAX_BYTES)
        return "its alignment is too large";
    if (buffer->fixed < PACK_FREE)
        return "its fixed offset is negative";
    if (buffer->fixed == PACK_FREE)
        return NULL;
    if ((uint64_t)buffer->fixed > PACK_MAX_BYTES - buffer->size)
        return "its fixed offset is too large";
    if ((uint64_t)buffer->fixed % align)
        return "its fixed offset is not aligned";
    return NULL;
}

static bool reject(PackSolution *solution, size_t buffer, const char *why)
{
    solution->bad = buffer;
    solution->why = why;
    return false;
}

static bool read_items(Model *model, PackSolution *solution)
{
    const PackProblem *problem = model->problem;
    if (problem->count >= (size_t)1 << 31)
        return reject(solution, 0, "there are too many buffers");
    model->item = ARENA_ARRAY(model->arena, Item, problem->count);
    model->origin = ARENA_ARRAY(model->arena, uint32_t, problem->count);
    uint64_t unit = 0, step = 0;
    for (size_t i = 0; i < problem->count; i++) {
        const PackBuffer *buffer = &problem->buffer[i];
        const char *why = fault_of(buffer);
        if (why)
            return reject(solution, i, why);
        if (!buffer->size)
            continue;
        uint64_t align = buffer->align ? buffer->align : 1;
        Item item = {.size = buffer->size, .align = align, .fixed = NOWHERE};
        if (buffer->fixed != PACK_FREE) {
            item.fixed = (uint64_t)buffer->fixed;
            step = gcd(step, item.fixed);
            model->any_fixed = true;
        }
        unit = gcd(unit, align);
        step = gcd(step, buffer->size);
        if (align > 1)
            step = gcd(step, align);
        model->origin[model->count] = (uint32_t)i;
        model->item[model->count++] = item;
    }
    /* Without alignments every offset worth trying is a sum of sizes. */
    model->unit = unit > 1 ? unit : step ? step : 1;
    model->step = step ? step : 1;
    return true;
}

/* A section ends where a buffer dies after another was born: only there is a set maximal. */
static void find_sections(Model *model)
{
    size_t events = 2 * (size_t)model->count;
    Arena *scratch = arena_new();
    Event *event = ARENA_ARRAY(scratch, Event, events);
    for (uint32_t i = 0; i < model->count; i++) {
        const PackBuffer *buffer = &model->problem->buffer[model->origin[i]];
        event[2 * i] = (Event){buffer->lower, i, 1};
        event[2 * i + 1] = (Event){buffer->upper, i, 0};
    }
    qsort(event, events, sizeof *event, by_time);
    bool grew = false;
    for (size_t e = 0; e < events; e++) {
        Item *item = &model->item[event[e].item];
        if (event[e].opens) {
            item->first = model->sections;
            grew = true;
            continue;
        }
        model->sections += grew;
        grew = false;
        item->last = model->sections - 1;
    }
    arena_free(scratch);
}

/* Loads as differences first; sums below 2^62 are exact modulo 2^64, and larger ones are found
 * by adding up in floating point beside them. */
static bool find_loads(Model *model, PackSolution *solution)
{
    uint64_t *load = model->load = ARENA_ARRAY(model->arena, uint64_t, model->sections + 1);
    double *rough = ARENA_ARRAY(model->arena, double, model->sections + 1);
    for (uint32_t i = 0; i < model->count; i++) {
        const Item *item = &model->item[i];
        load[item->first] += item->size;
        load[item->last + 1] -= item->size;
        rough[item->first] += (double)item->size;
        rough[item->last + 1] -= (double)item->size;
    }
    for (uint32_t s = 1; s < model->sections; s++) {
        load[s] += load[s - 1];
        rough[s] += rough[s - 1];
    }
    for (uint32_t s = 0; s < model->sections; s++)
        if (rough[s] > 0x1.1p62 || load[s] > PACK_MAX_BYTES)
            return reject(solution, 0, "the sizes of buffers alive together are too large");
    return true;
}

static int by_trim(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    if (x->trim != y->trim)
        return x->trim > y->trim ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The largest trim in each section: items paint their sections, the largest first, and `next`
 * skips what is painted already. */
static uint64_t *largest_trims(const Model *model)
{
    uint64_t *trim = ARENA_ARRAY(model->arena, uint64_t, model->sections);
    uint32_t *next = ARENA_ARRAY(model->arena, uint32_t, (size_t)model->sections + 1);
    const Item **item = ARENA_ARRAY(model->arena, const Item *, model->count);
    size_t count = 0;
    for (uint32_t i = 0; i < model->count; i++)
        if (model->item[i].trim)
            item[count++] = &model->item[i];
    qsort(item, count, sizeof *item, by_trim);
    for (uint32_t s = 0; s <= model->sections; s++)
        next[s] = s;
    for (size_t i = 0; i < count; i++)
        for (uint32_t s = item[i]->first;; s++) {
            while (next[s] != s)
                s = next[s] = next[next[s]];
            if (s > item[i]->last)
                break;
            trim[s] = item[i]->trim;
            next[s] = s + 1;
        }
    return trim;
}

/* The topmost buffer of a section need not be rounded up: the load less the largest trim. */
static void find_bound(Model *model)
{
    const uint64_t *trim = largest_trims(model);
    for (uint32_t i = 0; i < model->count; i++) {
        const Item *item = &model->item[i];
        if (item->fixed != NOWHERE && item->fixed + item->size - item->trim > model->bound)
            model->bound = item->fixed + item->size - item->trim;
    }
    for (uint32_t s = 0; s < model->sections; s++)
        if (model->load[s] - trim[s] > model->bound)
            model->bound = model->load[s] - trim[s];
}

static int by_offset(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    if (x->fixed != y->fixed)
        return x->fixed < y->fixed ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Fixed buffers that meet in time and bytes allow no packing at all. From the lowest up, each
 * must lie on or above the skyline of those before it. */
static bool fixed_agree(const Model *model, PackSolution *solution)
{
    if (!model->any_fixed)
        return true;
    const Item **fixed = ARENA_ARRAY(model->arena, const Item *, model->count);
    size_t count = 0;
    for (uint32_t i = 0; i < model->count; i++)
        if (model->item[i].fixed != NOWHERE)
            fixed[count++] = &model->item[i];
    qsort(fixed, count, sizeof *fixed, by_offset);
    Skyline *skyline = skyline_new(model->arena, model->sections);
    for (size_t i = 0; i < count; i++) {
        const Item *item = fixed[i];
        if (skyline_max(skyline, item->first, item->last) > item->fixed)
            return reject(solution, model->origin[item - model->item],
                          "its fixed offset collides with another fixed buffer");
        skyline_raise(skyline, item->first, item->last, item->fixed + item->size);
    }
    return true;
}

static bool is_always(const Model *model, const Item *item)
{
    return item->first == 0 && item->last == model->sections - 1 && !item->trim;
}

/* What is alive all the time cuts the rest apart in no packing that is worth having: moved to the
 * bottom, with what was below it above, the height stays as it was. So it takes no part in the
 * search. */
static void take_always(Model *model)
{
    uint32_t always = 0, kept = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->item[i].fixed != NOWHERE || model->item[i].align != model->unit)
            return;
        always += is_always(model, &model->item[i]);
    }
    if (always == model->count)
        return;
    model->lowest = ARENA_ARRAY(model->arena, uint32_t, always);
    for (uint32_t i = 0; i < model->count; i++) {
        if (is_always(model, &model->item[i])) {
            model->base += model->item[i].size;
            model->lowest[model->always++] = model->origin[i];
        } else {
            model->origin[kept] = model->origin[i];
            model->item[kept++] = model->item[i];
        }
    }
    model->count = kept;
    model->bound -= model->base;
    for (uint32_t s = 0; s < model->sections; s++)
        model->load[s] -= model->base;
}

Model *pack_model(Arena *arena, const PackProblem *problem, PackSolution *solution)
{
    Model *model = ARENA_NEW(arena, Model);
    model->problem = problem;
    model->arena = arena;
    if (!read_items(model, solution))
        return NULL;
    for (uint32_t i = 0; i < model->count; i++) {
        Item *item = &model->item[i];
        uint64_t size = round_up(item->size, model->unit);
        item->trim = size - item->size;
        item->size = size;
        item->align = round_up(item->align, model->unit);
    }
    find_sections(model);
    if (!find_loads(model, solution) || !fixed_agree(model, solution))
        return NULL;
    find_bound(model);
    take_always(model);
    return model;
}

uint64_t pack_bound(const PackProblem *problem)
{
    Arena *arena = arena_new();
    PackSolution ignored = {0};
    Model *model = pack_model(arena, problem, &ignored);
    uint64_t bound = model ? model->base + model->bound : 0;
    arena_free(arena);
    return bound;
}
