/* What C leaves undefined of integers has a meaning here: dividing by 0 gives 0, the largest
 * negative number by -1 wraps around, and a shift by more than there are bits shifts all of them
 * out. Narrower integers are computed as these and stored in their own bits. */
#ifndef GP_INTEGER_H
#define GP_INTEGER_H

#include "math.h"

/* Towards zero. */
GP_FUNCTION int64_t gp_int_div(int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

/* The rest of gp_int_div, with the sign of x; and with the sign of y. */
GP_FUNCTION int64_t gp_int_fmod(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

GP_FUNCTION int64_t gp_int_mod(int64_t x, int64_t y)
{
    const int64_t rest = gp_int_fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

GP_FUNCTION int64_t gp_shift_left(int64_t x, int64_t by)
{
    return by < 0 || by > 63 ? 0 : (int64_t)((uint64_t)x << by);
}

/* The sign comes in from the left. */
GP_FUNCTION int64_t gp_shift_right(int64_t x, int64_t by)
{
    const int64_t bits = by < 0 || by > 63 ? 63 : by;
    return x < 0 ? ~(~x >> bits) : x >> bits;
}

GP_FUNCTION gp_real gp_fmod(gp_real x, gp_real y)
{
    return sizeof x == sizeof(float) ? (gp_real)fmodf((float)x, (float)y)
                                     : (gp_real)fmod((double)x, (double)y);
}

GP_FUNCTION gp_real gp_mod(gp_real x, gp_real y)
{
    const gp_real rest = gp_fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

#endif
