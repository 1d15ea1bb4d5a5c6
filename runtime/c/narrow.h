/* Reals in memory, of 32 bits or of 16. */
#ifndef GP_NARROW_H
#define GP_NARROW_H

#include "base.h"

#ifndef GP_NO_HALF
/* f16 and bf16 are stored, and computed as gp_real.
 *
 * A kernel loads and stores through gp_get_real and gp_set_real with the dtype of its tensor; where
 * that is a constant after inlining, a loop over them vectorizes. Rounding is to nearest even,
 * subnormals are kept, overflow gives infinity, and a NaN stays one. Where gp_half is no 16 bits
 * (types.h), all of them leave a number as it is. */
GP_FUNCTION int gp_is_real(int dtype)
{
    return dtype == GP_F32 || dtype == GP_F16 || dtype == GP_BF16;
}

GP_FUNCTION uint32_t gp_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

GP_FUNCTION float gp_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

GP_FUNCTION gp_real gp_from_bf16(gp_half x)
{
    if (sizeof(gp_half) != 2)
        return (gp_real)x;
    return (gp_real)gp_bits_float((uint32_t)x << 16);
}

GP_FUNCTION gp_half gp_bf16(gp_real x)
{
    if (sizeof(gp_half) != 2)
        return (gp_half)x;
    const uint32_t bits = gp_float_bits((float)x);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (gp_half)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}

/* The exponent of an f16 has another bias: a product by a power of two moves it, and makes what is
 * subnormal there normal here. */
GP_FUNCTION gp_real gp_from_f16(gp_half x)
{
    if (sizeof(gp_half) != 2)
        return (gp_real)x;
    const uint32_t half = (uint32_t)x, size = (half & 0x7fffu) << 13;
    const float wide = gp_bits_float(size) * 0x1p112f;
    const uint32_t bits = size >= 0x0f800000u ? size | 0x7f800000u : gp_float_bits(wide);
    return (gp_real)gp_bits_float(bits | (half & 0x8000u) << 16);
}

/* Below the smallest normal number, adding 0.5 leaves the rounded multiple of 2^-24 in its last
 * bits. */
GP_FUNCTION gp_half gp_f16(gp_real x)
{
    if (sizeof(gp_half) != 2)
        return (gp_half)x;
    const uint32_t bits = gp_float_bits((float)x), size = bits & 0x7fffffffu;
    const uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
    const uint32_t small = gp_float_bits(gp_bits_float(size) + 0.5f) - 0x3f000000u;
    uint32_t half = size < 0x38800000u ? small : normal;
    half = size >= 0x477ff000u ? 0x7c00u : half;
    half = size > 0x7f800000u ? 0x7e00u : half;
    return (gp_half)(half | (bits >> 16 & 0x8000u));
}

/* What a store and a load leave of a number. */
GP_FUNCTION gp_real gp_round_to(gp_real x, int dtype)
{
    return dtype == GP_BF16  ? gp_from_bf16(gp_bf16(x))
           : dtype == GP_F16 ? gp_from_f16(gp_f16(x))
                             : x;
}

/* The same of n reals, `step` apart. */
GP_FUNCTION void gp_round_run(gp_real *to, const gp_real *from, int64_t step, int64_t n, int dtype)
{
    if (dtype == GP_BF16 && step == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_round_to(from[i], GP_BF16);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_round_to(from[i * step], dtype);
}

/* Element i of a tensor of reals. */
GP_FUNCTION gp_real gp_get_real(const void *at, int64_t i, int dtype)
{
    return dtype == GP_BF16  ? gp_from_bf16(((const gp_half *)at)[i])
           : dtype == GP_F16 ? gp_from_f16(((const gp_half *)at)[i])
                             : ((const gp_real *)at)[i];
}

GP_FUNCTION void gp_set_real(void *at, int64_t i, int dtype, gp_real x)
{
    if (dtype == GP_BF16)
        ((gp_half *)at)[i] = gp_bf16(x);
    else if (dtype == GP_F16)
        ((gp_half *)at)[i] = gp_f16(x);
    else
        ((gp_real *)at)[i] = x;
}

/* n elements that lie side by side. */
GP_FUNCTION void gp_get_row(gp_real *to, const void *from, int64_t n, int dtype)
{
    const gp_half *half = (const gp_half *)from;
    if (dtype == GP_BF16) {
        GP_IVDEP
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_from_bf16(half[i]);
    } else if (dtype == GP_F16) {
        GP_IVDEP
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_from_f16(half[i]);
    } else {
        memcpy(to, from, (size_t)n * sizeof *to);
    }
}

/* n elements of 16 bits, `step` apart. */
GP_FUNCTION void gp_get_run(gp_real *to, const void *from, int64_t step, int64_t n, int dtype)
{
    const gp_half *half = (const gp_half *)from;
    if (step == 1)
        gp_get_row(to, from, n, dtype);
    else if (dtype == GP_BF16)
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_from_bf16(half[i * step]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = gp_from_f16(half[i * step]);
}

GP_FUNCTION void gp_set_row(void *to, const gp_real *from, int64_t n, int dtype)
{
    gp_half *half = (gp_half *)to;
    if (dtype == GP_BF16) {
        GP_IVDEP
        for (int64_t i = 0; i < n; i++)
            half[i] = gp_bf16(from[i]);
    } else if (dtype == GP_F16) {
        GP_IVDEP
        for (int64_t i = 0; i < n; i++)
            half[i] = gp_f16(from[i]);
    } else {
        memcpy(to, from, (size_t)n * sizeof *from);
    }
}

/* The same of elements `step` apart. */
GP_FUNCTION void gp_set_run(void *to, int64_t step, const gp_real *from, int64_t n, int dtype)
{
    if (step == 1)
        gp_set_row(to, from, n, dtype);
    else
        for (int64_t i = 0; i < n; i++)
            gp_set_real(to, i * step, dtype, from[i]);
}

/* Whether a call has operands or a first output of 16 bits; of plans, data may be NULL. */
GP_FUNCTION int gp_is_half(const gp_call *c)
{
    int any = c->out[0].dtype == GP_F16 || c->out[0].dtype == GP_BF16;
    for (int i = 0; i < c->ins; i++)
        any |= c->in[i].dtype == GP_F16 || c->in[i].dtype == GP_BF16;
    return any;
}

/* Which 16 bits they have; GP_F32: none has. */
GP_FUNCTION int gp_half_of(const gp_call *c)
{
    int half = c->out[0].dtype == GP_F16 || c->out[0].dtype == GP_BF16 ? c->out[0].dtype : GP_F32;
    for (int i = 0; i < c->ins; i++)
        if (c->in[i].dtype == GP_F16 || c->in[i].dtype == GP_BF16)
            half = c->in[i].dtype;
    return half;
}

#else /* gplan knows a program without f16 and bf16 */
#define gp_is_real(dtype) ((dtype) == GP_F32)
#define gp_get_real(at, i, dtype) ((void)(dtype), ((const gp_real *)(at))[i])

GP_FUNCTION gp_real gp_round_to(gp_real x, int dtype)
{
    (void)dtype;
    return x;
}

GP_FUNCTION void gp_set_real(void *at, int64_t i, int dtype, gp_real x)
{
    (void)dtype;
    ((gp_real *)at)[i] = x;
}

GP_FUNCTION void gp_get_row(gp_real *to, const void *from, int64_t n, int dtype)
{
    (void)dtype;
    memcpy(to, from, (size_t)n * sizeof *to);
}

GP_FUNCTION void gp_set_row(void *to, const gp_real *from, int64_t n, int dtype)
{
    (void)dtype;
    memcpy(to, from, (size_t)n * sizeof *from);
}

#define gp_is_half(c) 0

GP_FUNCTION int gp_half_of(const gp_call *c)
{
    (void)c;
    return GP_F32;
}
#endif

/* Row `row` of n contiguous elements, as reals in `to`; and from there. */
GP_FUNCTION void gp_load_row(gp_real *to, const gp_tensor *t, int64_t row, int64_t n)
{
    gp_get_row(to, (const char *)t->data + row * n * (int64_t)gp_size(t->dtype), n, t->dtype);
}

GP_FUNCTION void gp_store_row(const gp_tensor *t, int64_t row, const gp_real *from, int64_t n)
{
    gp_set_row((char *)t->data + row * n * (int64_t)gp_size(t->dtype), from, n, t->dtype);
}

/* All reals of a contiguous tensor, of 16 bits to f32 or back. */
GP_FUNCTION void gp_convert(const gp_tensor *from, const gp_tensor *to)
{
    if (to->dtype == GP_F32)
        gp_get_row((gp_real *)to->data, from->data, gp_count(from), from->dtype);
    else
        gp_set_row(to->data, (const gp_real *)from->data, gp_count(from), to->dtype);
}

#endif
