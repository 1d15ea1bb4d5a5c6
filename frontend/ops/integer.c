/* Division, bits and shifts of integers, element by element; and the rest of a division, which
 * reals have too. See runtime/c/integer.h for what C leaves undefined. */
#include "frontend/ops/elementwise.h"

#define INTEGER OP_ELEMENTWISE | OP_INTEGERS

/* A row of each family implements the op: `of_reals` where an operand is one. */
static bool build_rest(Graph *g, Call *c, const char *of_integers, const char *of_reals)
{
    bool real = dtype_is_float(call_dtype(g, c, 0)) || dtype_is_float(call_dtype(g, c, 1));
    Use operand[2] = {call_operand(c, 0), call_operand(c, 1)};
    call_result(g, c, call_op(g, c, real ? of_reals : of_integers, 2, operand));
    return c->result.at[0].value != NONE;
}

static bool build_mod(Graph *g, Call *c)
{
    return build_rest(g, c, "mod_integer", "mod_real");
}

static bool build_fmod(Graph *g, Call *c)
{
    return build_rest(g, c, "fmod_integer", "fmod_real");
}

const OpRow ops_integer[] = {
    {.name = "intdiv",
     .kernel = "integer",
     .expr = "gp_int_div(a, b)",
     .args = TWO,
     .flags = INTEGER,
     .batch = batch_each,
     .help = "x / y of integers, towards zero; 0 where y is 0"},
    {.name = "mod",
     .args = TWO,
     .build = build_mod,
     .help = "rest of x / y with the sign of y, as % in Python; 0 where y is the integer 0"},
    {.name = "fmod",
     .args = TWO,
     .build = build_fmod,
     .help = "rest of x / y with the sign of x, as in C; 0 where y is the integer 0"},
    {.name = "mod_integer",
     .kernel = "integer",
     .expr = "gp_int_mod(a, b)",
     .args = TWO,
     .flags = INTEGER | OP_HIDDEN,
     .batch = batch_each},
    {.name = "mod_real",
     .kernel = "integer",
     .expr = "gp_mod(a, b)",
     .dexpr = {"dy", "-dy * gp_floor(a / b)"},
     .args = TWO,
     .flags = REAL | OP_HIDDEN,
     .batch = batch_each},
    {.name = "fmod_integer",
     .kernel = "integer",
     .expr = "gp_int_fmod(a, b)",
     .args = TWO,
     .flags = INTEGER | OP_HIDDEN,
     .batch = batch_each},
    {.name = "fmod_real",
     .kernel = "integer",
     .expr = "gp_fmod(a, b)",
     .dexpr = {"dy", "-dy * gp_trunc(a / b)"},
     .args = TWO,
     .flags = REAL | OP_HIDDEN,
     .batch = batch_each},
    {.name = "bit_and",
     .expr = "a & b",
     .args = TWO,
     .flags = INTEGER,
     .batch = batch_each,
     .help = "bits that both have, of integers"},
    {.name = "bit_or",
     .expr = "a | b",
     .args = TWO,
     .flags = INTEGER,
     .batch = batch_each,
     .help = "bits that either has, of integers"},
    {.name = "bit_xor",
     .expr = "a ^ b",
     .args = TWO,
     .flags = INTEGER,
     .batch = batch_each,
     .help = "bits that one of the two has, of integers"},
    {.name = "bit_not",
     .expr = "~a",
     .args = ONE,
     .flags = INTEGER,
     .batch = batch_each,
     .help = "all bits flipped, of integers"},
    {.name = "shift_left",
     .kernel = "integer",
     .expr = "gp_shift_left(a, b)",
     .args = TWO,
     .flags = INTEGER,
     .batch = batch_each,
     .help = "bits of x moved up by y places, zeros coming in; y < 0 leaves none"},
    {.name = "shift_right",
     .kernel = "integer",
     .expr = "gp_shift_right(a, b)",
     .args = TWO,
     .flags = INTEGER,
     .batch = batch_each,
     .help = "bits of x moved down by y places, the sign coming in; y < 0 leaves only that"},
    {0},
};
