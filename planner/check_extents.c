/* Where the buffers of a plan lie, found from the plan alone: the checker's own arithmetic. */
#include "planner/check_extents.h"

#include <string.h>

const char *extents_name(const Extents *p, Id buffer)
{
    const Buffer *b = &p->plan->buffer[buffer];
    if (b->value != NONE)
        return p->plan->graph->value.at[b->value].name;
    return b->kind == BUFFER_STATE  ? "the target's state"
           : b->kind == BUFFER_DATA ? "the ring"
                                    : "workspace";
}

static uint64_t element(const Extents *p, const Buffer *b)
{
    return b->value == NONE ? 1 : dtype_size((Dtype)p->plan->graph->value.at[b->value].dtype);
}

void extents_of(const Extents *p, Id id, uint64_t *begin, uint64_t *end)
{
    const Buffer *b = &p->plan->buffer[id];
    uint64_t size = element(p, b), last = 0;
    if (b->value == NONE) {
        *begin = p->base[id];
        *end = p->base[id] + b->bytes;
        return;
    }
    for (int i = 0; i < b->layout.rank; i++)
        last += (uint64_t)((b->layout.dim[i] - 1) * b->layout.stride[i]);
    *begin = p->base[id] + (uint64_t)b->layout.offset * size;
    *end = *begin + (last + 1) * size;
}

static bool same_strides(const View *a, const View *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->stride[i] != b->stride[i] || a->stride[i] <= 0)
            return false;
    return true;
}

/* Two boxes on one grid, the second `distance` elements after the first: is there an element of
 * both? Each axis can stand a whole period back, so every way to write the distance is tried. */
static bool boxes_meet(const View *a, const View *b, int axis, int64_t distance)
{
    if (axis == a->rank)
        return distance == 0;
    int64_t stride = a->stride[axis], steps = distance / stride;
    for (int64_t s = steps; s <= steps + 1; s++) /* the rest may be negative once */
        if (s < a->dim[axis] && s + b->dim[axis] > 0 &&
            boxes_meet(a, b, axis + 1, distance - s * stride))
            return true;
    if (distance < 0) {
        int64_t s = steps - 1;
        if (s < a->dim[axis] && s + b->dim[axis] > 0)
            return boxes_meet(a, b, axis + 1, distance - s * stride);
    }
    return false;
}

bool extents_overlap(const Extents *p, Id first, Id second)
{
    const Buffer *a = &p->plan->buffer[first], *b = &p->plan->buffer[second];
    uint64_t a_begin, a_end, b_begin, b_end;
    extents_of(p, first, &a_begin, &a_end);
    extents_of(p, second, &b_begin, &b_end);
    if (a_begin >= b_end || b_begin >= a_end)
        return false;
    uint64_t size = element(p, a);
    if (a->value == NONE || b->value == NONE || size != element(p, b) ||
        p->base[first] != p->base[second] || !same_strides(&a->layout, &b->layout))
        return true;
    return boxes_meet(&a->layout, &b->layout, 0, b->layout.offset - a->layout.offset);
}

bool extents_period(const Extents *p, Id id, bool outer, Period *period)
{
    const Buffer *b = &p->plan->buffer[id];
    const View *layout = &b->layout;
    int64_t run = 1; /* elements from the first to past the last of what is in a period */
    int i = layout->rank - 1, first = 0;
    while (first < i && layout->dim[first] == 1)
        first++;
    for (; i >= 0 && (layout->dim[i] == 1 || layout->stride[i] == run); i--)
        run *= layout->dim[i];
    if (b->value == NONE || i < 0)
        return false;
    for (; outer && i > first; i--)
        run += (layout->dim[i] - 1) * layout->stride[i];
    int64_t apart = layout->stride[i], begin = layout->offset % apart;
    for (int k = 0; k < i; k++)
        if (layout->dim[k] != 1 && layout->stride[k] % apart)
            return false;
    uint64_t size = element(p, b);
    *period =
        (Period){(uint64_t)apart * size, (uint64_t)begin * size, (uint64_t)(begin + run) * size};
    return begin + run <= apart;
}

bool extents_same(const Extents *p, Id first, Id second)
{
    const Buffer *a = &p->plan->buffer[first], *b = &p->plan->buffer[second];
    return p->base[first] == p->base[second] && a->layout.offset == b->layout.offset &&
           element(p, a) == element(p, b) && view_is_dense(&a->layout) &&
           view_is_dense(&b->layout) && view_count(&a->layout) == view_count(&b->layout);
}

/* Each axis steps over the whole extent of the axes inside it, so no two elements share bytes. */
static bool lies_apart(const View *layout)
{
    int64_t inner = 1;
    for (int i = layout->rank; i-- > 0;) {
        if (layout->dim[i] == 1)
            continue;
        if (layout->stride[i] < inner)
            return false;
        inner = layout->dim[i] * layout->stride[i];
    }
    return layout->offset >= 0;
}

/* What is wrong with it, or NULL. */
static const char *check_buffer(const Extents *p, const Target *target, Arena *arena, Id id)
{
    const Buffer *b = &p->plan->buffer[id];
    uint64_t begin, end, align = target->align;
    if (b->value != NONE) {
        const Value *value = &p->plan->graph->value.at[b->value];
        if (b->layout.rank != value->rank ||
            memcmp(b->layout.dim, value->dim, value->rank * sizeof *value->dim) != 0)
            return arena_printf(arena, "buffer %u has other dims than %s", id, value->name);
        if (b->bytes < value_bytes(value))
            return arena_printf(arena, "buffer %u is smaller than %s", id, value->name);
        if (!lies_apart(&b->layout))
            return arena_printf(arena, "buffer %u has elements of %s that overlap", id,
                                value->name);
        if (b->kind <= BUFFER_OUTPUT && !view_is_dense(&b->layout))
            return arena_printf(arena, "buffer %u: the caller would find gaps in %s", id,
                                value->name);
    }
    extents_of(p, id, &begin, &end);
    if (!space_planned[b->space]) {
        const Buffer *root = &p->plan->buffer[b->root];
        if (begin < p->base[id] || end < begin || end > p->base[id] + root->bytes)
            return arena_printf(arena, "buffer %u (%s) ends outside the caller's memory", id,
                                extents_name(p, id));
        return NULL;
    }
    if (b->offset % align)
        return arena_printf(arena, "buffer %u (%s) is not aligned to %u bytes", id,
                            extents_name(p, id), (unsigned)align);
    const uint64_t first = p->base[id] - b->offset;
    if (begin < first || end - first > p->plan->arena[b->space] || end < begin)
        return arena_printf(arena, "buffer %u (%s) ends outside the %s", id, extents_name(p, id),
                            space_names[b->space]);
    return NULL;
}

/* What is wrong with its root, or NULL. */
static const char *find_bases(Extents *p, Arena *arena)
{
    const Plan *plan = p->plan;
    uint64_t first[SPACES], next = 0; /* one arena after the other, then the caller's memory */
    for (Space space = 0; space < SPACES; space++) {
        first[space] = next;
        next += plan->arena[space];
    }
    p->base = ARENA_ARRAY(arena, uint64_t, plan->buffers);
    for (Id i = 0; i < plan->buffers; i++) {
        const Buffer *b = &plan->buffer[i];
        if (b->root >= plan->buffers || plan->buffer[b->root].root != b->root ||
            b->space >= SPACES || plan->buffer[b->root].space != b->space)
            return arena_printf(arena, "buffer %u has a root that cannot hold it", i);
        p->base[i] = space_planned[b->space] ? first[b->space] + b->offset : next;
        if (!space_planned[b->space] && b->root == i)
            next += b->bytes;
    }
    for (Id i = 0; i < plan->buffers; i++)
        if (!space_planned[plan->buffer[i].space])
            p->base[i] = p->base[plan->buffer[i].root];
    return NULL;
}

const char *extents_find(Extents *p, const Plan *plan, const Target *target, Arena *arena)
{
    *p = (Extents){.plan = plan};
    const char *error = find_bases(p, arena);
    for (Id i = 0; i < plan->buffers && !error; i++)
        error = check_buffer(p, target, arena, i);
    return error;
}
