/* Sliding windows: which outputs of a row or column read a position inside the input. */
#ifndef GP_WINDOW_H
#define GP_WINDOW_H

#include "base.h"

typedef struct {
    int64_t from, to; /* outputs from .. to - 1 */
} gp_range;

/* Of the outputs begin .. end - 1, those o with 0 <= o * stride + first < size. */
GP_FUNCTION gp_range gp_inside(int64_t begin, int64_t end, int64_t stride, int64_t first,
                               int64_t size)
{
    int64_t low = first < 0 ? -first : 0, high = size > first ? size - first : 0;
    if (stride != 1) { /* usually 1, and division is slow */
        low = (low + stride - 1) / stride;
        high = (high + stride - 1) / stride;
    }
    gp_range range = {low > begin ? low : begin, high < end ? high : end};
    if (range.from > range.to)
        range.from = range.to = end < range.from ? end : range.from;
    return range;
}

#endif
