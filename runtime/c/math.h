/* The math functions of expressions and kernels, in the real type: float ones for float. */
#ifndef GP_MATH_H
#define GP_MATH_H

#include "base.h"

#define GP_MATH_1(name)                                                                           \
    GP_FUNCTION gp_real gp_##name(gp_real x)                                                      \
    {                                                                                             \
        return sizeof x == sizeof(float) ? (gp_real)name##f((float)x) : (gp_real)name((double)x); \
    }

GP_MATH_1(exp)
GP_MATH_1(expm1)
GP_MATH_1(log)
GP_MATH_1(log1p)
GP_MATH_1(sqrt)
GP_MATH_1(fabs)
GP_MATH_1(floor)
GP_MATH_1(ceil)
GP_MATH_1(rint) /* halves to the even number, as NumPy rounds */
GP_MATH_1(sin)
GP_MATH_1(cos)
GP_MATH_1(tanh)
GP_MATH_1(erf)
#undef GP_MATH_1

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
    return 1 / (1 + gp_exp(-x));
}

/* A ramp from 0 at x = -3 to 1 at x = 3. */
GP_FUNCTION gp_real gp_hardsigmoid(gp_real x)
{
    return x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6;
}

/* Slopes that no shorter expression has. */
GP_FUNCTION gp_real gp_gelu_exact_slope(gp_real x)
{
    return (gp_real)0.5 * (1 + gp_erf(x * (gp_real)0.7071067811865476)) +
           x * (gp_real)0.3989422804014327 * gp_exp((gp_real)-0.5 * x * x);
}

GP_FUNCTION gp_real gp_gelu_tanh_slope(gp_real x)
{
    const gp_real t = gp_tanh((gp_real)0.7978845608028654 * (x + (gp_real)0.044715 * x * x * x));
    const gp_real inner = (gp_real)0.7978845608028654 * (1 + (gp_real)0.134145 * x * x);
    return (gp_real)0.5 * (1 + t) + (gp_real)0.5 * x * (1 - t * t) * inner;
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
