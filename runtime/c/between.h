/* Linear interpolation along an axis: which elements an output lies between. */
#ifndef GP_BETWEEN_H
#define GP_BETWEEN_H

#include "base.h"

/* An output interpolates elements `low` and `high` of an axis, with weight `part` on `high`. */
typedef struct {
    int64_t low, high;
    gp_real part;
} gp_between;

GP_FUNCTION gp_between gp_upsample_place(int64_t i, int64_t in, int64_t out, int64_t align_corners)
{
    double at;
    if (align_corners)
        at = out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
    else
        at = ((double)i + 0.5) * (double)in / (double)out - 0.5;
    at = at < 0 ? 0 : at;
    gp_between place;
    place.low = (int64_t)at < in - 1 ? (int64_t)at : in - 1;
    place.high = place.low + 1 < in ? place.low + 1 : place.low;
    place.part = (gp_real)(at - (double)place.low);
    return place;
}

#endif
