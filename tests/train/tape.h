/* Derivatives of scalars in double, by a tape: every number that is computed is written down with
 * its parents and the partial derivatives, and the backward pass walks the list. Written for these
 * tests alone, so that gplan's gradients are compared with something that shares nothing with
 * them. */
#ifndef TESTS_TAPE_H
#define TESTS_TAPE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t Var; /* its place on the tape; 0 is a constant that nothing flows to */

/* value = f(a, b) + c */
typedef struct {
    double value, grad, da, db;
    Var a, b, c;
} Entry;

static struct {
    Entry *at;
    size_t count, capacity;
} tape;

static void *need(void *memory)
{
    if (!memory) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return memory;
}

static Var push(double value, Var a, double da, Var b, double db, Var c)
{
    if (tape.count == tape.capacity) {
        tape.capacity = tape.capacity ? 2 * tape.capacity : 1 << 16;
        tape.at = need(realloc(tape.at, tape.capacity * sizeof *tape.at));
    }
    tape.at[tape.count] = (Entry){value, 0, da, db, a, b, c};
    return (Var)tape.count++;
}

static void tape_clear(void)
{
    tape.count = 0;
    push(0, 0, 0, 0, 0, 0);
}

static void tape_back(Var from)
{
    tape.at[from].grad = 1;
    for (size_t i = tape.count; i-- > 1;) {
        const Entry *e = &tape.at[i];
        tape.at[e->a].grad += e->grad * e->da;
        tape.at[e->b].grad += e->grad * e->db;
        tape.at[e->c].grad += e->grad;
    }
}

static inline double val(Var x)
{
    return tape.at[x].value;
}

static inline Var number(double x)
{
    return push(x, 0, 0, 0, 0, 0);
}

static inline Var madd(Var c, Var a, Var b)
{
    return push(val(c) + val(a) * val(b), a, val(b), b, val(a), c);
}

static inline Var add(Var a, Var b)
{
    return push(val(a) + val(b), a, 1, b, 1, 0);
}

static inline Var sub(Var a, Var b)
{
    return push(val(a) - val(b), a, 1, b, -1, 0);
}

static inline Var mul(Var a, Var b)
{
    return push(val(a) * val(b), a, val(b), b, val(a), 0);
}

static inline Var divide(Var a, Var b)
{
    return push(val(a) / val(b), a, 1 / val(b), b, -val(a) / (val(b) * val(b)), 0);
}

static inline Var scale(Var a, double by)
{
    return push(val(a) * by, a, by, 0, 0, 0);
}

/* f(a) with its derivative there. */
static inline Var apply(Var a, double value, double derivative)
{
    return push(value, a, derivative, 0, 0, 0);
}

static inline Var vexp(Var a)
{
    return apply(a, exp(val(a)), exp(val(a)));
}

static inline Var vlog(Var a)
{
    return apply(a, log(val(a)), 1 / val(a));
}

static inline Var vsqrt(Var a)
{
    return apply(a, sqrt(val(a)), 0.5 / sqrt(val(a)));
}

static inline Var vtanh(Var a)
{
    return apply(a, tanh(val(a)), 1 - tanh(val(a)) * tanh(val(a)));
}

static inline Var relu(Var a)
{
    return apply(a, val(a) > 0 ? val(a) : 0, val(a) > 0);
}

/* The approximation by tanh. */
static inline Var gelu(Var a)
{
    const double k = sqrt(2 / M_PI), x = val(a), t = tanh(k * (x + 0.044715 * x * x * x));
    return apply(a, 0.5 * x * (1 + t),
                 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x));
}

#endif
