/* Numbers in 8 bits: blocks of GP_CODED_BLOCK, each with its largest magnitude, and codes that say
 * what part of that a number is. Dettmers et al., 8-bit Optimizers via Block-wise Quantization
 * (2022), with the map of bitsandbytes: decades from 1e-6 to 1, each divided evenly, into twice as
 * many parts as the one below; code values are the middles of the parts, 0 and 1.
 *
 * Signed: 127 parts on either side of code 127, which is 0; 255 is 1. Unsigned: 0 is 0, 254 parts,
 * 255 is 1. A number gets the nearest code, but a negative one never that of 0. */
#ifndef GP_CODED_H
#define GP_CODED_H

#include "base.h"

enum { GP_CODED_BLOCK = 256, GP_CODES = 256, GP_DECADES = 7 };

/* A map: what codes are, and where the nearest changes from one decade to the next. */
typedef struct {
    int is_signed;
    gp_real value[GP_CODES];
    gp_real bound[GP_DECADES + 1]; /* above it: decade i; the last: 1; below the first: 0 */
    gp_real up[GP_DECADES];        /* brings decade i to 0.1 .. 1 */
} gp_codes;

/* Magnitude number n, from 1: part n - first of its decade. */
GP_FUNCTION double gp_code_magnitude(int n, int is_signed)
{
    int decade = 0, first = 1, parts = is_signed ? 1 : 2;
    double unit = 1e-6;
    for (; n >= first + parts && decade + 1 < GP_DECADES; decade++, unit *= 10) {
        first += parts;
        parts *= 2;
    }
    return n < first + parts ? unit * (0.1 + 0.9 * (n - first + 0.5) / parts) : 1;
}

GP_FUNCTION gp_real gp_code_value(int code, int is_signed)
{
    const int zero = is_signed ? 127 : 0;
    return code == zero  ? 0
           : code > zero ? (gp_real)gp_code_magnitude(code - zero, is_signed)
                         : -(gp_real)gp_code_magnitude(zero - code, is_signed);
}

GP_FUNCTION void gp_codes_bounds(gp_codes *codes, int is_signed)
{
    double up = 1e6;
    int first = 1, parts = is_signed ? 1 : 2;
    codes->is_signed = is_signed;
    for (int i = 0; i <= GP_DECADES; i++, first += parts, parts *= 2, up /= 10) {
        const double below = i ? gp_code_magnitude(first - 1, is_signed) : 0;
        codes->bound[i] = (gp_real)((below + gp_code_magnitude(first, is_signed)) / 2);
        if (i < GP_DECADES)
            codes->up[i] = (gp_real)up;
    }
}

GP_FUNCTION void gp_codes_fill(gp_codes *codes, int is_signed)
{
    for (int code = 0; code < GP_CODES; code++)
        codes->value[code] = gp_code_value(code, is_signed);
    gp_codes_bounds(codes, is_signed);
}

/* The nearest code of x, from -1 to 1. */
GP_FUNCTION uint8_t gp_code_of(const gp_codes *codes, gp_real x)
{
    const int is_signed = codes->is_signed;
    const gp_real size = x < 0 ? -x : x;
    gp_real up = codes->up[0], parts = is_signed ? 1 : 2;
    for (int i = 1; i < GP_DECADES; i++) {
        const int above = size > codes->bound[i];
        up = above ? codes->up[i] : up;
        parts = above ? (gp_real)((is_signed ? 1 : 2) << i) : parts;
    }
    const gp_real at = (size * up - (gp_real)0.1) * (parts / (gp_real)0.9);
    const int32_t last = (int32_t)parts - 1, floor = at > 0 ? (int32_t)at : 0;
    int32_t n = last + (is_signed ? 1 : 0) + (floor < last ? floor : last);
    n = size > codes->bound[0] ? n : 0;
    if (!is_signed)
        return (uint8_t)(size > codes->bound[GP_DECADES] ? 255 : n);
    const int32_t least = n > 1 ? n : 1;
    const int32_t positive = size > codes->bound[GP_DECADES] ? 255 : 127 + n;
    return (uint8_t)(x < 0 ? 127 - least : positive);
}

#endif
