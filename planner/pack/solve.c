/* The portfolio: the cheap methods first, until the height reaches the bound or the capacity. */
#include "planner/pack/internal.h"

#include "frontend/base/clock.h"

#include <string.h>

enum { LOOK = 200000 }; /* effort between looks at the clock: about a millisecond */

bool pack_spend(Pack *pack, uint64_t steps)
{
    pack->effort += steps;
    if (pack->deadline > 0 && pack->effort >= pack->next_look) {
        pack->next_look = pack->effort + LOOK;
        pack->out_of_time |= clock_seconds() >= pack->deadline;
    }
    return pack->effort < pack->limit && !pack->out_of_time;
}

uint64_t pack_height(const Model *model, const uint64_t *offset)
{
    uint64_t height = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        uint64_t top = offset[i] + (model->item[i].size - model->item[i].trim);
        height = top > height ? top : height;
    }
    return height;
}

bool pack_offer(Pack *pack, const uint64_t *offset)
{
    uint64_t height = pack_height(pack->model, offset);
    if (height >= pack->height)
        return false;
    pack->height = height;
    memcpy(pack->offset, offset, pack->model->count * sizeof *offset);
    return true;
}

const char *pack_stop_name(PackStop stop)
{
    static const char *const name[] = {
        [PACK_STOP_BOUND] = "lower bound met",  [PACK_STOP_CAPACITY] = "capacity met",
        [PACK_STOP_PROVED] = "search complete", [PACK_STOP_EFFORT] = "effort used up",
        [PACK_STOP_SECONDS] = "out of time",    [PACK_STOP_INVALID] = "invalid problem",
    };
    return name[stop];
}

static void start(Pack *pack, Arena *arena, const Model *model, const PackOptions *options)
{
    pack->model = model;
    if (options)
        pack->options = *options;
    if (!pack->options.effort)
        pack->options.effort = PACK_EFFORT_DEFAULT;
    pack->limit = pack->options.effort;
    if (pack->options.seconds > 0)
        pack->deadline = clock_seconds() + pack->options.seconds;
    pack->offset = ARENA_ARRAY(arena, uint64_t, model->count);
    pack->height = model->count ? NOWHERE : 0;
    pack->bound = model->bound;
    pack->target = model->bound;
    const uint64_t capacity = model->problem->capacity;
    pack->capacity = capacity > model->base ? capacity - model->base : capacity != 0;
    if (pack->capacity > pack->target)
        pack->target = pack->capacity;
}

static PackStatus finish(const Pack *pack, PackSolution *solution)
{
    const Model *model = pack->model;
    const PackProblem *problem = model->problem;
    for (size_t i = 0; i < problem->count; i++)
        solution->offset[i] =
            problem->buffer[i].fixed == PACK_FREE ? 0 : (uint64_t)problem->buffer[i].fixed;
    for (uint32_t i = 0; i < model->count; i++)
        solution->offset[model->origin[i]] = model->base + pack->offset[i];
    uint64_t below = 0;
    for (uint32_t i = 0; i < model->always; i++) {
        solution->offset[model->lowest[i]] = below;
        below += problem->buffer[model->lowest[i]].size;
    }
    solution->height = model->base + pack->height;
    solution->bound = model->base + pack->bound;
    solution->optimal = pack->height == pack->bound;
    solution->effort = pack->effort;
    uint64_t capacity = pack->capacity;
    if (capacity && pack->bound > capacity)
        solution->stop = PACK_STOP_PROVED;
    else if (solution->optimal)
        solution->stop = pack->bound > model->bound ? PACK_STOP_PROVED : PACK_STOP_BOUND;
    else if (capacity && pack->height <= capacity)
        solution->stop = PACK_STOP_CAPACITY;
    else
        solution->stop = pack->out_of_time ? PACK_STOP_SECONDS : PACK_STOP_EFFORT;
    if (!capacity || pack->height <= capacity)
        return PACK_OK;
    return pack->bound > capacity ? PACK_INFEASIBLE : PACK_NOT_FOUND;
}

/* The bound is above the capacity: any packing will do to show how far. */
static bool hopeless(const Pack *pack)
{
    uint64_t capacity = pack->capacity;
    return capacity && pack->bound > capacity && pack->height != NOWHERE;
}

/* Many buffers: what is near linear first, then the local search, which seldom needs long. */
static void run_large(Pack *pack)
{
    unsigned skip = pack->options.skip;
    if (!(skip & PACK_NO_SWEEP))
        pack_sweep(pack);
    if (hopeless(pack))
        return;
    pack->limit = pack->options.effort / 2;
    if (!pack_done(pack) && !(skip & PACK_NO_SQUEAK))
        pack_squeak(pack, 2);
    pack->limit = pack->options.effort;
    if (!pack_done(pack) && (!(skip & PACK_NO_FIT) || pack->height == NOWHERE))
        pack_fit_orders(pack);
}

static void run_small(Pack *pack)
{
    enum { MANY = 500 }; /* the complete search takes long to get near from afar */
    unsigned skip = pack->options.skip;
    if (!(skip & PACK_NO_FIT) || skip & PACK_NO_SQUEAK)
        pack_fit_orders(pack);
    if (!pack_done(pack) && !(skip & PACK_NO_SWEEP))
        pack_sweep(pack);
    if (hopeless(pack))
        return;
    if (!pack_done(pack) && !(skip & PACK_NO_SQUEAK) &&
        (pack_near(pack, pack->height) || pack->model->count > MANY))
        pack_squeak(pack, 4);
    if (!pack_done(pack) && !(skip & PACK_NO_SEARCH))
        pack_search(pack);
}

static void run(Pack *pack)
{
    enum { LARGE = 5000, ENDLESS = 1 << 30 };
    if (pack->model->count > LARGE)
        run_large(pack);
    else
        run_small(pack);
    bool open = pack->height > pack->target && pack->bound <= pack->target && !hopeless(pack);
    if (pack->height == NOWHERE || (open && !(pack->options.skip & PACK_NO_SQUEAK)))
        pack_squeak(pack, ENDLESS);
}

PackStatus pack_solve(const PackProblem *problem, const PackOptions *options,
                      PackSolution *solution)
{
    *solution = (PackSolution){.offset = solution->offset, .stop = PACK_STOP_INVALID};
    Arena *arena = arena_new();
    Model *model = pack_model(arena, problem, solution);
    PackStatus status = PACK_INVALID;
    if (model) {
        Pack pack = {0};
        start(&pack, arena, model, options);
        run(&pack);
        if (pack.height <= PACK_MAX_BYTES - model->base)
            status = finish(&pack, solution);
        else
            solution->why = "no packing below 2^62 bytes was found";
    }
    arena_free(arena);
    return status;
}
