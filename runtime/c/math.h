/* The math functions of expressions and kernels, in the real type.
 *
 * For float those that models use most are branch-free, without calls or tables, so that loops over
 * them vectorize on any instruction set. Their errors stay below these ulps: exp, log and sqrt 1,
 * expm1, log1p, tanh and erf 1.5, sigmoid and silu 2.5. Both forms of gelu are off by less than
 * 1.5e-7 |x|. Zeros, infinities, NaN and subnormals are as in C's library, but sigmoid is 0 below
 * -88.4, and exact gelu is -3e-15 below -9, at -infinity too. The polynomials are minimax fits. */
#ifndef GP_MATH_H
#define GP_MATH_H

#include "base.h"

#define GP_LARGEST 3.402823466e38 /* bits of floats */

GP_FUNCTION float gp_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

GP_FUNCTION uint32_t gp_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* yes ? a : b, in a form that compilers do not turn into a branch, which would keep a loop
 * scalar. */
GP_FUNCTION float gp_choose(int yes, float a, float b)
{
    const uint32_t mask = 0u - (uint32_t)yes;
    return gp_of_bits((gp_bits_of(a) & mask) | (gp_bits_of(b) & ~mask));
}

/* x clamped to [low, high], low < 0 < high; NaN becomes one of the two. Bits of negative floats
 * grow away from 0 as unsigned integers, those of positive ones as signed integers: the integer
 * minimum is a single instruction and never a branch. */
GP_FUNCTION float gp_limited(float x, float low, float high)
{
    const uint32_t bits = gp_bits_of(x), lowest = gp_bits_of(low);
    const int32_t raised = (int32_t)(bits < lowest ? bits : lowest);
    const int32_t highest = (int32_t)gp_bits_of(high);
    return gp_of_bits((uint32_t)(raised < highest ? raised : highest));
}

/* x = n log(2) + r with |r| <= log(2) / 2: r, and n + bias as the last bits of `*n`. */
GP_FUNCTION float gp_exp_split(float x, float bias, float *n)
{
    const float round = 12582912 + bias; /* 1.5 * 2^23: adding it rounds the fraction away */
    *n = x * 1.442695041f + round;
    const float whole = *n - round;
    return (x - whole * 0.693145752f) - whole * 1.428606820e-06f;
}

/* exp(r) - 1, by pairs of terms: a short dependency chain. */
GP_FUNCTION float gp_exp_rest(float r)
{
    const float r2 = r * r;
    const float low = 4.999999404e-01f + r * 1.666651964e-01f;
    const float middle = 4.166839272e-02f + r * 8.368780836e-03f;
    return r + r2 * (low + r2 * (middle + r2 * 1.381446840e-03f));
}

/* exp(x) in three forms, the narrower the shorter, that agree to the bit for |x| <= 80. First where
 * 2^n is normal: |x| <= 80; from -88 to there 2^n may be 0. */
GP_FUNCTION float gp_float_exp_near(float x)
{
    float n;
    const float rest = gp_exp_rest(gp_exp_split(x, 127, &n));
    const float power = gp_of_bits(gp_bits_of(n) << 23);
    return power * rest + power;
}

/* x <= 80; below -80 off by up to the smallest normal number. `low`: the result of gp_exp_low. */
GP_FUNCTION float gp_float_exp_below(float x, float low)
{
    return gp_float_exp_near(low > x ? low : x);
}

/* Any x: 2^n in two factors. */
GP_FUNCTION float gp_float_exp(float x)
{
    const float low = gp_choose(x < -104, -104, x), in = gp_choose(low > 89, 89, low);
    float n;
    const float rest = gp_exp_rest(gp_exp_split(in, 2 * 127, &n));
    const uint32_t both = gp_bits_of(n) << 23, half = gp_bits_of(n) << 22 & 0xff800000u;
    const float power = gp_of_bits(half);
    return (power * rest + power) * gp_of_bits(both - half);
}

/* 2^n (exp(r) - 1) + (2^n - 1) */
GP_FUNCTION float gp_float_expm1(float x)
{
    const float low = gp_choose(x < -30, -30, x), in = gp_choose(low > 30, 30, low);
    float n;
    const float r = gp_exp_split(in, 127, &n), e = gp_exp_rest(r);
    const float power = gp_of_bits(gp_bits_of(n) << 23);
    const float y = power * e + (power - 1), large = gp_float_exp(x);
    return gp_choose(x == 0, x, gp_choose(x > 25, large, y));
}

/* x = 2^n (1 + f) with 1 + f between the roots of 1/2 and 2. */
GP_FUNCTION float gp_float_log(float x)
{
    const int tiny = x < 1.17549435e-38f;
    const float normal = gp_choose(tiny, x * 16777216, x);
    const uint32_t bits = gp_bits_of(normal) - 0x3f3504f3u; /* the root of 1/2 */
    const int32_t power = (int32_t)(bits & 0xff800000u) / (1 << 23);
    const float n = (float)(power - 24 * tiny);
    const float f = gp_of_bits((bits & 0x007fffffu) + 0x3f3504f3u) - 1, f2 = f * f;
    const float rest =
        3.333331347e-01f +
        f * (-2.500000894e-01f +
             f * (2.000211924e-01f +
                  f * (-1.666799635e-01f +
                       f * (1.421955079e-01f +
                            f * (-1.240559146e-01f +
                                 f * (1.188817471e-01f +
                                      f * (-1.167564094e-01f + f * 6.746601313e-02f)))))));
    const float small = f2 * f * rest + n * 1.428606820e-06f;
    const float y = (small - 0.5f * f2) + f + n * 0.693145752f;
    const float finite = gp_choose(x > 0, y, gp_choose(x == 0, -INFINITY, NAN));
    return gp_choose(x > 3.402823466e38f, x, finite);
}

GP_FUNCTION float gp_float_log1p(float x)
{
    const float u = 1 + x, y = gp_float_log(u), lost = (u - 1) - x;
    const float near = y - lost / u;
    const float any = gp_choose((u <= 0) | (u > 3.402823466e38f), y, near);
    return gp_choose(x == 0, x, any);
}

/* 1 + exp(x), from 1 to infinity, as a divisor; NaN becomes one of the two. */
GP_FUNCTION float gp_float_exp_plus_1(float x)
{
    float n;
    const float rest = gp_exp_rest(gp_exp_split(gp_limited(x, -88, 89), 127, &n));
    return gp_of_bits(gp_bits_of(n) << 23) * (1 + rest) + 1;
}

/* The same with 1 + 2^x, shorter: for an x that was rounded before, which costs as much
 * accuracy. */
GP_FUNCTION float gp_float_exp2_plus_1(float x)
{
    const float in = gp_limited(x, -127, 128), round = 12582912 + 127, n = in + round;
    const float r = in - (n - round), r2 = r * r;
    const float low = 1.000000119e+00f + r * 6.931469440e-01f;
    const float middle = 2.402211726e-01f + r * 5.550714582e-02f;
    const float high = 9.675656445e-03f + r * 1.327635953e-03f;
    return gp_of_bits(gp_bits_of(n) << 23) * (low + r2 * (middle + r2 * high)) + 1;
}

GP_FUNCTION float gp_float_sigmoid(float x)
{
    return gp_choose(x == x, 1 / gp_float_exp_plus_1(-x), x);
}

GP_FUNCTION float gp_float_silu(float x)
{
    return x / gp_float_exp_plus_1(-x);
}

/* The tail of the normal distribution beyond x, 0 <= x <= 9, as 2^p with a fitted p in units of
 * 2^-23: as an integer its low bits are the fraction f of p, exactly where 1 + f has them. */
GP_FUNCTION float gp_float_normal_beyond(float x)
{
    const float x2 = x * x;
    const float low = -8.388607131e+06f + x * -9.656218468e+06f;
    const float middle = -3.851655766e+06f + x * -4.420051021e+05f;
    const float high = 6.198573567e+04f + x * -3.533601154e+03f;
    const float highest = -4.521713474e+02f + x * 7.105215367e+01f;
    const uint32_t p = (uint32_t)(int32_t)(low + x2 * (middle + x2 * (high + x2 * highest)));
    const float f1 = gp_of_bits((p & 0x007fffffu) | 0x3f800000u);
    const float power =
        4.982859143e-01f +
        f1 * (3.537553163e-01f +
              f1 * (1.078349367e-01f +
                    f1 * (3.864472442e-02f + f1 * (-3.985432789e-04f + f1 * 1.877576674e-03f))));
    return gp_of_bits(gp_bits_of(power) + (p & 0xff800000u));
}

/* min(|x|, 9): the tail beyond 9 is below 3e-16. */
GP_FUNCTION float gp_normal_size(float x)
{
    const uint32_t size = gp_bits_of(x) & 0x7fffffffu, most = gp_bits_of(9);
    return gp_of_bits(size < most ? size : most);
}

/* x times the normal distribution function of x. */
GP_FUNCTION float gp_float_gelu_exact(float x)
{
    const float size = gp_normal_size(x);
    return (0 > x ? 0 : x) - size * gp_float_normal_beyond(size);
}

GP_FUNCTION float gp_float_normal_below(float x)
{
    const float beyond = gp_float_normal_beyond(gp_normal_size(x));
    return gp_choose(0 > x, beyond, 1 - beyond);
}

/* gelu by tanh is x / (1 + 2^p), as 1 + tanh(z) = 2 / (1 + exp(-2 z)). */
GP_FUNCTION float gp_float_gelu_tanh_divisor(float x)
{
    return gp_float_exp2_plus_1(x * (-2.302208185e+00f + x * x * -1.029432416e-01f));
}

/* y >= 0 with the sign of x. */
GP_FUNCTION float gp_with_sign(float y, float x)
{
    return gp_of_bits(gp_bits_of(y) | (gp_bits_of(x) & 0x80000000u));
}

GP_FUNCTION float gp_float_tanh(float x)
{
    const float z = x * x, a = fabsf(x);
    const float near =
        x +
        x * z *
            (-3.333332837e-01f +
             z * (1.333315223e-01f +
                  z * (-5.393994227e-02f +
                       z * (2.166340128e-02f + z * (-8.085622452e-03f + z * 2.059577499e-03f)))));
    const float e = gp_float_exp_near(2 * gp_choose(a > 10, 10, a)), far = 1 - 2 / (e + 1);
    return gp_choose(a < 0.625f, near, gp_with_sign(far, x));
}

/* x + x P(x^2) near 0, 1 - exp(-Q(|x|)) elsewhere. */
GP_FUNCTION float gp_float_erf(float x)
{
    const float z = x * x, a = fabsf(x), in = gp_choose(a > 4, 4, a);
    const float near =
        x + x * (1.283791661e-01f +
                 z * (-3.761263192e-01f +
                      z * (1.128367633e-01f +
                           z * (-2.685834467e-02f +
                                z * (5.198462401e-03f +
                                     z * (-8.114047814e-04f + z * 8.251002873e-05f))))));
    const float power =
        -1.692051301e-04f +
        in * (1.129488349e+00f +
              in * (6.334008574e-01f +
                    in * (1.082203835e-01f +
                          in * (-2.508061565e-02f +
                                in * (4.156254698e-03f +
                                      in * (-4.313935642e-04f + in * 2.082861829e-05f))))));
    const float far = 1 - gp_float_exp_near(-power);
    return gp_choose(a < 0.92f, near, gp_with_sign(far, x));
}

/* Newton's method for the inverse root, from an estimate by the exponent; then one step for the
 * root. C's sqrt may set errno, which keeps a loop scalar. */
GP_FUNCTION float gp_float_sqrt(float x)
{
    const int tiny = x<1e-30f, large = x> 1e30f;
    const float in = x * gp_choose(tiny, 18446744073709551616.0f,
                                   gp_choose(large, 1 / 18446744073709551616.0f, 1));
    const float half = 0.5f * in;
    float y = gp_of_bits(0x5f375a86u - (gp_bits_of(in) >> 1));
    y = y * (1.5f - half * y * y);
    y = y * (1.5f - half * y * y);
    y = y * (1.5f - half * y * y);
    const float near = in * y, root = near + 0.5f * y * (in - near * near);
    const float back =
        root * gp_choose(tiny, 1 / 4294967296.0f, gp_choose(large, 4294967296.0f, 1));
    const float other = gp_choose((x == 0) | (x > 0), x, NAN);
    return gp_choose((x > 0) & (x <= 3.402823466e38f), back, other);
}

#define GP_MATH_1(name, single)                                                                  \
    GP_FUNCTION gp_real gp_##name(gp_real x)                                                     \
    {                                                                                            \
        return sizeof x == sizeof(float) ? (gp_real)single((float)x) : (gp_real)name((double)x); \
    }

GP_MATH_1(exp, gp_float_exp)
GP_MATH_1(expm1, gp_float_expm1)
GP_MATH_1(log, gp_float_log)
GP_MATH_1(log1p, gp_float_log1p)
GP_MATH_1(tanh, gp_float_tanh)
GP_MATH_1(erf, gp_float_erf)
GP_MATH_1(sqrt, gp_float_sqrt)
GP_MATH_1(fabs, fabsf)
GP_MATH_1(floor, floorf)
GP_MATH_1(ceil, ceilf)
GP_MATH_1(trunc, truncf)
GP_MATH_1(rint, rintf) /* ties to even, as NumPy rounds */
GP_MATH_1(sin, sinf)
GP_MATH_1(cos, cosf)
GP_MATH_1(tan, tanf)
GP_MATH_1(asin, asinf)
GP_MATH_1(acos, acosf)
GP_MATH_1(atan, atanf)
GP_MATH_1(sinh, sinhf)
GP_MATH_1(cosh, coshf)
GP_MATH_1(asinh, asinhf)
GP_MATH_1(acosh, acoshf)
GP_MATH_1(atanh, atanhf)
#undef GP_MATH_1

/* The bound below which exp flushes to 0: one of two numbers, by any loop invariant. If the
 * compiler knew which, it would turn the comparison into a branch. */
GP_FUNCTION gp_real gp_exp_low(gp_real any)
{
    return any < 0 ? (gp_real)-87.75 : -88;
}

/* exp(x) of x <= 80; subnormal results may be 0. */
GP_FUNCTION gp_real gp_exp_below(gp_real x, gp_real low)
{
    return sizeof x == sizeof(float) ? (gp_real)gp_float_exp_below((float)x, (float)low)
                                     : (gp_real)exp((double)x);
}

GP_FUNCTION gp_real gp_pow(gp_real x, gp_real y)
{
    return sizeof x == sizeof(float) ? (gp_real)powf((float)x, (float)y)
                                     : (gp_real)pow((double)x, (double)y);
}

/* log(1 + exp(x)) without overflow, and exact in both tails. */
GP_FUNCTION gp_real gp_softplus(gp_real x)
{
    return (x > 0 ? x : 0) + gp_log1p(gp_exp(-gp_fabs(x)));
}

GP_FUNCTION gp_real gp_sigmoid(gp_real x)
{
    return sizeof x == sizeof(float) ? (gp_real)gp_float_sigmoid((float)x)
                                     : (gp_real)(1 / (1 + exp(-(double)x)));
}

/* log(1 + exp(x)) - x y, without cancellation; at infinity too. */
GP_FUNCTION gp_real gp_logit_loss(gp_real x, gp_real y)
{
    const gp_real weight = x > 0 ? 1 - y : -y, large = weight * x;
    return (weight == 0 ? 0 : large) + gp_log1p(gp_exp(-gp_fabs(x)));
}

/* log(x) and log(1 - x), clamped to -100 from below. */
GP_FUNCTION gp_real gp_bounded_log(gp_real x)
{
    const gp_real y = gp_log(x < 0 ? 0 : x);
    return y < -100 ? -100 : y;
}

GP_FUNCTION gp_real gp_bounded_log_rest(gp_real x)
{
    const gp_real y = gp_log1p(x > 1 ? -1 : -x);
    return y < -100 ? -100 : y;
}

/* A ramp from 0 at x = -3 to 1 at x = 3. */
GP_FUNCTION gp_real gp_hardsigmoid(gp_real x)
{
    return x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6;
}

GP_FUNCTION gp_real gp_silu(gp_real x)
{
    return sizeof x == sizeof(float) ? (gp_real)gp_float_silu((float)x) : x * gp_sigmoid(x);
}

GP_FUNCTION gp_real gp_normal_below(gp_real x)
{
    return sizeof x == sizeof(float) ? (gp_real)gp_float_normal_below((float)x)
                                     : (gp_real)(0.5 * erfc((double)x * -0.7071067811865476));
}

GP_FUNCTION gp_real gp_gelu_exact(gp_real x)
{
    return sizeof x == sizeof(float) ? (gp_real)gp_float_gelu_exact((float)x)
                                     : x * gp_normal_below(x);
}

/* The divisor of gelu by tanh. */
GP_FUNCTION gp_real gp_gelu_tanh_divisor(gp_real x)
{
    const gp_real inner = (gp_real)1.5957691216057308 + (gp_real)0.07135481627260025 * x * x;
    return sizeof x == sizeof(float) ? (gp_real)gp_float_gelu_tanh_divisor((float)x)
                                     : (gp_real)(1 + exp(-(double)(x * inner)));
}

/* Derivatives that have no shorter expression. */
GP_FUNCTION gp_real gp_gelu_exact_slope(gp_real x)
{
    return gp_normal_below(x) + x * (gp_real)0.3989422804014327 * gp_exp((gp_real)-0.5 * x * x);
}

GP_FUNCTION gp_real gp_gelu_tanh_slope(gp_real x)
{
    const gp_real s = 1 / gp_gelu_tanh_divisor(x);
    const gp_real inner = (gp_real)1.5957691216057308 + (gp_real)0.21406444881780073 * x * x;
    return s + x * s * (1 - s) * inner;
}

GP_FUNCTION gp_real gp_silu_slope(gp_real x)
{
    const gp_real s = gp_sigmoid(x);
    return s * (1 + x * (1 - s));
}

GP_FUNCTION gp_real gp_mish_slope(gp_real x)
{
    const gp_real t = gp_tanh(gp_softplus(x));
    return t + x * (1 - t * t) * gp_sigmoid(x);
}

#endif
