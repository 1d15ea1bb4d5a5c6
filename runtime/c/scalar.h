/* Casts from real numbers to integers: towards zero, saturating, and 0 for a NaN. (C leaves the
 * last two undefined.) */
#ifndef GP_SCALAR_H
#define GP_SCALAR_H

#include "base.h"

GP_FUNCTION int32_t gp_to_i32(gp_real x)
{
    if (!(x > (gp_real)INT32_MIN)) /* also if x is NaN */
        return x != x ? 0 : INT32_MIN;
    return x < (gp_real)2147483648.0 ? (int32_t)x : INT32_MAX;
}

GP_FUNCTION int64_t gp_to_i64(gp_real x)
{
    if (!(x > (gp_real)INT64_MIN))
        return x != x ? 0 : INT64_MIN;
    return x < (gp_real)9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

GP_FUNCTION uint8_t gp_to_u8(gp_real x)
{
    if (!(x > 0))
        return 0;
    return x < 255 ? (uint8_t)x : 255;
}

#endif
