/* Conversions of `cast` from and to dtypes that nothing computes in: i8, u16, u32, f64; and from
 * wider numbers than a gp_real to f16 and bf16, rounded once. Reals convert to integers as in
 * scalar.h, to f16 and bf16 as in narrow.h. */
#ifndef GP_STORED_H
#define GP_STORED_H

#include "narrow.h"
#include "scalar.h"

/* Clamps to the range of an integer type; 0 for a NaN. The caller truncates. */
GP_FUNCTION double gp_within(double x, double low, double high)
{
    if (!(x > low))
        return x != x ? 0 : low;
    return x < high ? x : high;
}

GP_FUNCTION int64_t gp_f64_to_i64(double x)
{
    if (!(x > (double)INT64_MIN))
        return x != x ? 0 : INT64_MIN;
    return x < 9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

/* Rounds an integer with more bits than a double to odd, so that rounding once more to fewer bits
 * gives what rounding at once would. */
GP_FUNCTION double gp_odd_f64(int64_t x)
{
    const uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    if (size >> 53 == 0)
        return (double)x;
    const double odd = (double)((size >> 11 | ((size & 2047) != 0)) << 11);
    return x < 0 ? -odd : odd;
}

/* A double in 16 bits: `digits` of fraction, and the exponent's bias. */
GP_FUNCTION uint16_t gp_narrow(double x, int digits, int bias)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t size = bits & INT64_MAX, one = 1;
    const uint32_t sign = (uint32_t)(bits >> 63) << 15, infinite = (2u * bias + 1) << digits;
    const int exponent = (int)(size >> 52) - 1023 + bias;
    const int shift = 52 - digits + (exponent < 1 ? 1 - exponent : 0);
    if (size > (uint64_t)2047 << 52)
        return (uint16_t)(sign | infinite | 1u << (digits - 1));
    if (exponent > 2 * bias)
        return (uint16_t)(sign | infinite);
    if (shift > 53)
        return (uint16_t)sign;
    const uint64_t fraction = (size & ((one << 52) - 1)) | one << 52;
    const uint64_t rest = fraction & ((one << shift) - 1), half = one << (shift - 1);
    uint32_t rounded = (uint32_t)(fraction >> shift);
    rounded += rest > half || (rest == half && (rounded & 1)); /* may carry into the exponent */
    if (exponent > 1)
        rounded += (uint32_t)(exponent - 1) << digits;
    return (uint16_t)(sign | rounded);
}

GP_FUNCTION gp_half gp_to_f16(double x)
{
    return sizeof(gp_half) == 2 ? (gp_half)gp_narrow(x, 10, 15) : (gp_half)x;
}

GP_FUNCTION gp_half gp_to_bf16(double x)
{
    return sizeof(gp_half) == 2 ? (gp_half)gp_narrow(x, 7, 127) : (gp_half)x;
}

#endif
