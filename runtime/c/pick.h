/* Elements that an index picks along an axis of a tensor, the other axes staying where they are:
 * what gather_elements and scatter share. The index may be shorter than the tensor along those. */
#ifndef GP_PICK_H
#define GP_PICK_H

#include "line.h"

/* Picks of one column stand along the axis. Columns lie in rows: side by side along the last axis,
 * or alone where that is the axis itself. */
typedef struct {
    int axis;
    int64_t rows, width, count; /* columns are rows * width; count: picks of each */
} gp_picks;

GP_FUNCTION gp_picks gp_picks_of(const gp_tensor *index, int axis)
{
    gp_picks p;
    const int last = index->rank - 1;
    p.axis = axis;
    p.width = axis == last ? 1 : index->dim[last];
    p.count = index->dim[axis];
    p.rows = gp_count(index) / (p.width * p.count);
    return p;
}

/* Where row `row` begins in a tensor of these strides. */
GP_FUNCTION int64_t gp_picks_at(const gp_picks *p, const gp_tensor *index, int64_t row,
                                const int64_t *stride)
{
    int64_t at = 0;
    for (int d = index->rank - (p->axis != index->rank - 1); d-- > 0;)
        if (d != p->axis) {
            at += row % index->dim[d] * stride[d];
            row /= index->dim[d];
        }
    return at;
}

/* From one column to the next. */
GP_FUNCTION int64_t gp_picks_step(const gp_picks *p, const gp_tensor *t)
{
    return p->axis == t->rank - 1 ? 0 : t->stride[t->rank - 1];
}

GP_FUNCTION void gp_copy_one(size_t size, void *to, int64_t to_at, const void *from,
                             int64_t from_at)
{
    if (size == 8)
        ((uint64_t *)to)[to_at] = ((const uint64_t *)from)[from_at];
    else if (size == 4)
        ((uint32_t *)to)[to_at] = ((const uint32_t *)from)[from_at];
    else if (size == 2)
        ((uint16_t *)to)[to_at] = ((const uint16_t *)from)[from_at];
    else
        ((uint8_t *)to)[to_at] = ((const uint8_t *)from)[from_at];
}

/* ---- What scatter does with an element and an update of it ----------------------------------- */

enum { GP_SCATTER_SET, GP_SCATTER_ADD, GP_SCATTER_MUL, GP_SCATTER_MAX, GP_SCATTER_MIN };

/* A NaN of either stays. */
GP_FUNCTION gp_real gp_scatter_real(int64_t reduction, gp_real x, gp_real update)
{
    switch (reduction) {
    case GP_SCATTER_ADD:
        return x + update;
    case GP_SCATTER_MUL:
        return x * update;
    case GP_SCATTER_MAX:
        return x >= update || x != x ? x : update;
    default:
        return x <= update || x != x ? x : update;
    }
}

/* Integers wrap around. */
GP_FUNCTION int64_t gp_scatter_int(int64_t reduction, int64_t x, int64_t update)
{
    switch (reduction) {
    case GP_SCATTER_ADD:
        return (int64_t)((uint64_t)x + (uint64_t)update);
    case GP_SCATTER_MUL:
        return (int64_t)((uint64_t)x * (uint64_t)update);
    case GP_SCATTER_MAX:
        return x >= update ? x : update;
    default:
        return x <= update ? x : update;
    }
}

GP_FUNCTION void gp_scatter_one(int64_t reduction, const gp_tensor *to, int64_t to_at,
                                const gp_tensor *update, int64_t at)
{
    if (reduction == GP_SCATTER_SET && to->dtype == update->dtype) {
        gp_copy_one(gp_size(to->dtype), to->data, to_at, update->data, at);
    } else if (gp_is_real(to->dtype)) {
        const gp_real by = gp_get_real(update->data, at, update->dtype);
        if (reduction != GP_SCATTER_SET)
            gp_set_real(to->data, to_at, to->dtype,
                        gp_scatter_real(reduction, gp_get_real(to->data, to_at, to->dtype), by));
        else
            gp_set_real(to->data, to_at, to->dtype, by);
    } else {
        gp_store_int(to, to_at,
                     gp_scatter_int(reduction, gp_load_int(to, to_at), gp_load_int(update, at)));
    }
}

#endif
