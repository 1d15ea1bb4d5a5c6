/* The math functions of float against those of double: over floats of every size, their errors
 * stay below what math.h says, and what is not finite comes out as C's library has it. */
#include "runtime/c/math.h"

#include <stdio.h>

/* In units in the last place of `want` as a float. */
static double error(double want, float got)
{
    if (want != want || got != got || isinf(got) || isinf((float)want))
        return (float)want == got || (want != want && got != got) ? 0 : 1e9;
    int power;
    frexp(want, &power);
    return fabs((double)got - want) / ldexp(1, (power < -125 ? -125 : power) - 24);
}

static int check(const char *name, float (*single)(float), double (*exact)(double), double most)
{
    double worst = 0;
    float at = 0;
    for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 4093) {
        const float x = gp_of_bits((uint32_t)i);
        const double here = error(exact((double)x), single(x));
        if (here > worst) {
            worst = here;
            at = x;
        }
    }
    static const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1, -1, 1e-45f, -1e-45f};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        const double here = error(exact((double)special[i]), single(special[i]));
        worst = here > worst ? here : worst;
    }
    if (worst > most)
        printf("%s: %.2f at %.9g\n", name, worst, (double)at);
    return worst > most;
}

static double sigmoid(double x)
{
    return x < -88.376 ? 0 : 1 / (1 + exp(-x)); /* 0 where few of its bits would be left */
}

static double silu(double x)
{
    return isinf(x) && x < 0 ? NAN : x * sigmoid(x);
}

/* gelu stays as near to x times its share as |x| times so much. */
static double share_exact(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static double share_tanh(double x)
{
    return 1 / (1 + exp(-x * (1.5957691216057308 + 0.07135481627260025 * x * x)));
}

static float gelu_tanh(float x)
{
    return x / gp_float_gelu_tanh_divisor(x);
}

static int check_gelu(const char *name, float (*gelu)(float), double (*share)(double))
{
    double worst = 0;
    for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 4093) {
        const float x = gp_of_bits((uint32_t)i), y = gelu(x);
        const double want = (double)x * share((double)x);
        const double here = fabs((double)y - want) / (fabs((double)x) + 1e-37);
        const double units = x != x ? (y == y) * 1e9 : isinf(x) ? 0 : here / 1.5e-7;
        worst = units > worst ? units : worst;
    }
    worst = gelu(INFINITY) == INFINITY ? worst : 1e9;
    if (worst > 1)
        printf("%s: %.2f of what it may be off\n", name, worst);
    return worst > 1;
}

/* The shorter forms of exp give the same bits where they may be used. */
static int check_forms(void)
{
    int wrong = 0;
    for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 4093) {
        const float x = gp_of_bits((uint32_t)i), y = gp_float_exp(x);
        const uint32_t bits = gp_bits_of(y);
        for (int k = -1; k < 2 && x <= 80; k += 2) {
            const float below = gp_float_exp_below(x, gp_exp_low((float)k));
            wrong += x >= -80 ? gp_bits_of(below) != bits : fabsf(below - y) > 0x1p-126f;
        }
        wrong += fabsf(x) <= 80 && gp_bits_of(gp_float_exp_near(x)) != bits;
        wrong += x != x && !isnan(gp_float_exp_below(x, gp_exp_low(0)));
    }
    if (wrong)
        printf("exp: %d differ in their short forms\n", wrong);
    return wrong > 0;
}

int main(void)
{
    int wrong = check_forms() + check("exp", gp_float_exp, exp, 1);
    wrong += check("log", gp_float_log, log, 1);
    wrong += check("expm1", gp_float_expm1, expm1, 1.5);
    wrong += check("log1p", gp_float_log1p, log1p, 1.5);
    wrong += check("tanh", gp_float_tanh, tanh, 1.5);
    wrong += check("erf", gp_float_erf, erf, 1.5);
    wrong += check("sigmoid", gp_float_sigmoid, sigmoid, 2.5);
    wrong += check("silu", gp_float_silu, silu, 2.5);
    wrong += check_gelu("gelu", gp_float_gelu_exact, share_exact);
    wrong += check_gelu("gelu by tanh", gelu_tanh, share_tanh);
    wrong += check("sqrt", gp_float_sqrt, sqrt, 1);
    puts("math");
    return wrong;
}
