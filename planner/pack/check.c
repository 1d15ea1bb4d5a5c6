/* The validator: shares no code with the solver. Sweeps over time and keeps what is alive in
 * order of offset; two neighbours in that order that overlap are the fault. */
#include "frontend/base/arena.h"
#include "planner/pack/pack.h"

#include <stdlib.h>

typedef struct {
    int64_t time;
    size_t buffer;
    bool birth;
} Moment;

/* Deaths before births at equal times: lifetimes are half open. */
static int earlier(const void *a, const void *b)
{
    const Moment *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->birth != y->birth)
        return x->birth ? 1 : -1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

/* A treap of the living, ordered by offset; its priorities are hashes of the index. */
typedef struct {
    const PackProblem *problem;
    const uint64_t *offset;
    size_t *left, *right; /* index + 1; 0: no child */
    size_t root;
} Living;

static uint64_t priority(size_t buffer)
{
    uint64_t hash = (buffer + 1) * 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 32);
}

static void cut(const Living *living, size_t tree, uint64_t offset, size_t *below, size_t *above)
{
    while (tree) {
        if (living->offset[tree - 1] < offset) {
            *below = tree;
            below = &living->right[tree - 1];
            tree = *below;
        } else {
            *above = tree;
            above = &living->left[tree - 1];
            tree = *above;
        }
    }
    *below = *above = 0;
}

static void insert(Living *living, size_t buffer)
{
    size_t *link = &living->root;
    while (*link && priority(*link - 1) >= priority(buffer))
        link = living->offset[*link - 1] < living->offset[buffer] ? &living->right[*link - 1]
                                                                  : &living->left[*link - 1];
    cut(living, *link, living->offset[buffer], &living->left[buffer], &living->right[buffer]);
    *link = buffer + 1;
}

static size_t join(const Living *living, size_t below, size_t above)
{
    size_t root = 0, *link = &root;
    while (below && above) {
        if (priority(below - 1) > priority(above - 1)) {
            *link = below;
            link = &living->right[below - 1];
            below = *link;
        } else {
            *link = above;
            link = &living->left[above - 1];
            above = *link;
        }
    }
    *link = below ? below : above;
    return root;
}

static void erase(Living *living, size_t buffer)
{
    size_t *link = &living->root;
    while (*link != buffer + 1)
        link = living->offset[*link - 1] < living->offset[buffer] ? &living->right[*link - 1]
                                                                  : &living->left[*link - 1];
    *link = join(living, living->left[buffer], living->right[buffer]);
}

/* Somebody alive who shares a byte with the newcomer, + 1. The living do not overlap, so only
 * the one just below its offset and the one at or above it can. */
static size_t collision(const Living *living, size_t buffer)
{
    uint64_t offset = living->offset[buffer], end = offset + living->problem->buffer[buffer].size;
    size_t below = 0, above = 0;
    for (size_t at = living->root; at;) {
        if (living->offset[at - 1] < offset) {
            below = at;
            at = living->right[at - 1];
        } else {
            above = at;
            at = living->left[at - 1];
        }
    }
    if (below && living->offset[below - 1] + living->problem->buffer[below - 1].size > offset)
        return below;
    return above && living->offset[above - 1] < end ? above : 0;
}

static PackVerdict check_overlaps(const PackProblem *problem, const uint64_t *offset)
{
    PackVerdict verdict = {PACK_FAULT_NONE, 0, 0};
    size_t count = problem->count;
    Arena *arena = arena_new();
    Moment *moment = ARENA_ARRAY(arena, Moment, 2 * count + 1);
    size_t *links = ARENA_ARRAY(arena, size_t, 2 * count + 1);
    Living living = {problem, offset, links, links + count, 0};
    size_t moments = 0;
    for (size_t i = 0; i < count; i++) {
        if (!problem->buffer[i].size)
            continue;
        moment[moments++] = (Moment){problem->buffer[i].lower, i, true};
        moment[moments++] = (Moment){problem->buffer[i].upper, i, false};
    }
    qsort(moment, moments, sizeof *moment, earlier);
    for (size_t m = 0; m < moments; m++) {
        size_t buffer = moment[m].buffer;
        if (!moment[m].birth) {
            erase(&living, buffer);
            continue;
        }
        size_t other = collision(&living, buffer);
        if (other) {
            verdict = (PackVerdict){PACK_FAULT_OVERLAP, other - 1, buffer};
            break;
        }
        insert(&living, buffer);
    }
    arena_free(arena);
    return verdict;
}

PackVerdict pack_check(const PackProblem *problem, const PackSolution *solution)
{
    uint64_t height = 0;
    for (size_t i = 0; i < problem->count; i++) {
        const PackBuffer *buffer = &problem->buffer[i];
        uint64_t offset = solution->offset[i];
        if (buffer->align > 1 && offset % buffer->align)
            return (PackVerdict){PACK_FAULT_ALIGN, i, i};
        if (buffer->fixed >= 0 && offset != (uint64_t)buffer->fixed)
            return (PackVerdict){PACK_FAULT_FIXED, i, i};
        if (!buffer->size)
            continue;
        if (offset > UINT64_MAX - buffer->size ||
            (problem->capacity && offset + buffer->size > problem->capacity))
            return (PackVerdict){PACK_FAULT_CAPACITY, i, i};
        if (offset + buffer->size > height)
            height = offset + buffer->size;
    }
    if (height != solution->height)
        return (PackVerdict){PACK_FAULT_HEIGHT, 0, 0};
    if (height < solution->bound)
        return (PackVerdict){PACK_FAULT_BOUND, 0, 0};
    return check_overlaps(problem, solution->offset);
}

const char *pack_fault_name(PackFault fault)
{
    static const char *const name[] = {
        [PACK_FAULT_NONE] = "no fault",
        [PACK_FAULT_OVERLAP] = "two buffers alive together share bytes",
        [PACK_FAULT_ALIGN] = "an offset is not aligned",
        [PACK_FAULT_FIXED] = "a fixed buffer was moved",
        [PACK_FAULT_CAPACITY] = "a buffer ends above the capacity",
        [PACK_FAULT_HEIGHT] = "the height is not the highest end",
        [PACK_FAULT_BOUND] = "the height is below the bound",
    };
    return name[fault];
}
