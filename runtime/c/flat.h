/* Several indices as one, through axes of these sizes. */
#ifndef GP_FLAT_H
#define GP_FLAT_H

#include "base.h"
#include "settings.h"

/* Row `row` of an index [..., axes], after its batch; -1 where an index is outside its axis. */
GP_FUNCTION int64_t gp_flat(const gp_tensor *index, const gp_flat_index_attr *a, int64_t row)
{
    const int axes = (int)index->dim[index->rank - 1];
    const int64_t rows = gp_span(index, 0, index->rank - 1);
    int64_t flat = row / (rows / a->batches);
    for (int i = 0; i < axes; i++) {
        const int64_t at = gp_index(index, row * axes + i), n = a->size[i];
        if (at < -n || at >= n)
            return -1;
        flat = flat * n + (at < 0 ? at + n : at);
    }
    return flat;
}

#endif
