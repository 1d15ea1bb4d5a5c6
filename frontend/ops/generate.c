/* Tensors that no operand is needed for: counts and random numbers. Each is an elementwise op over
 * a constant of the wanted shape, so it fuses with who reads it and is stored nowhere. An element
 * is known by its place in the whole batch, so that micro-batches make the same. */
#include "frontend/ops/rules.h"

#include <math.h>

static Use constant(Graph *g, double number, Dtype dtype, int rank, const int64_t *dim)
{
    View view = {.rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        view.dim[i] = dim[i];
    return use_make(g, graph_literal(g, number, dtype).value, view);
}

static bool check_shape(Graph *g, const Call *c, Dtype dtype, int rank, const int64_t *dim)
{
    const char *error;
    return dims_check(dtype, rank, dim, &error) ||
           call_error(g, c, "shape %s is invalid: %s", shape_text(g->arena, DTYPES, rank, dim),
                      error);
}

Use use_places(Graph *g, const Call *from, int64_t n)
{
    Use zeros = constant(g, 0, I64, 1, &n);
    return call_op(g, from, "place", 1, &zeros);
}

/* start + step * i, in the arithmetic of the dtype. */
static bool build_arange(Graph *g, Call *c)
{
    static const Dtype dtypes[] = {I64, I32, F32}; /* the words, in order */
    Dtype dtype = dtypes[call_int(c, "dtype")];
    double start = call_attr(c, "start")->number, step = call_attr(c, "step")->number;
    int64_t count = call_int(c, "count");
    if (!check_shape(g, c, I64, 1, &count))
        return false;
    if (dtype != F32 && (start != floor(start) || step != floor(step)))
        return call_error(g, c, "start and step of %s must be whole numbers", dtype_name(dtype));
    Use x = use_places(g, c, count);
    if (dtype != I64) {
        Call cast = call_begin(g, c, "cast");
        call_set(&cast, "dtype", dtype);
        call_use(g, &cast, x);
        x = call_finish(g, &cast) ? cast.result.at[0] : (Use){NONE, NONE};
    }
    if (step != 1)
        x = call_op(g, c, "mul", 2, (Use[]){x, graph_literal(g, step, dtype)});
    if (start != 0)
        x = call_op(g, c, "add", 2, (Use[]){x, graph_literal(g, start, dtype)});
    call_result(g, c, x);
    return x.value != NONE;
}

/* `op` over a constant of the shape, with its two settings. */
static bool build_draw(Graph *g, Call *c, const char *op, const char *first, const char *second)
{
    const Attr *shape = call_attr(c, "shape");
    if (!check_shape(g, c, F32, shape->count, shape->list))
        return false;
    Call draw = call_begin(g, c, op);
    call_set(&draw, first, call_attr(c, first)->number);
    call_set(&draw, second, call_attr(c, second)->number);
    call_use(g, &draw, constant(g, 0, F32, shape->count, shape->list));
    if (!call_finish(g, &draw))
        return false;
    call_result(g, c, draw.result.at[0]);
    return true;
}

static bool build_random_normal(Graph *g, Call *c)
{
    return build_draw(g, c, "draw_normal", "mean", "std");
}

static bool build_random_uniform(Graph *g, Call *c)
{
    return build_draw(g, c, "draw_uniform", "low", "high");
}

#define SHAPE                                                                                     \
    {                                                                                             \
        .name = "shape", .kind = ARG_INTS, .flags = ARG_FRONT, .count = MAX_RANK, .help = "sizes" \
    }
#define PLACE                                                                 \
    {.name = "parts", .kind = ARG_INT, .flags = ARG_HIDDEN, .fallback = "0"}, \
    {                                                                         \
        .name = "span", .kind = ARG_INT, .flags = ARG_HIDDEN, .fallback = "0" \
    }
#define FLOAT(NAME, FALLBACK, HELP)                                                    \
    {                                                                                  \
        .name = (NAME), .kind = ARG_FLOAT, .flags = ARG_FRONT, .fallback = (FALLBACK), \
        .help = (HELP)                                                                 \
    }

const OpRow ops_generate[] = {
    {.name = "arange",
     .help = "[count]: start, start + step, start + 2 step, ...",
     .args = {{.name = "count", .kind = ARG_INT, .flags = ARG_FRONT, .help = "how many"},
              FLOAT("start", "0", "the first"),
              FLOAT("step", "1", "from one to the next"),
              {.name = "dtype",
               .kind = ARG_WORD,
               .flags = ARG_FRONT,
               .fallback = "i64",
               .words = "i64 i32 f32"}},
     .build = build_arange},
    {.name = "random_normal",
     .help = "f32 numbers of a normal distribution, others in every step",
     .args = {SHAPE, FLOAT("mean", "0", NULL), FLOAT("std", "1", "standard deviation")},
     .build = build_random_normal,
     .flags = OP_RANDOM},
    {.name = "random_uniform",
     .help = "f32 numbers from low to less than high, others in every step",
     .args = {SHAPE, FLOAT("low", "0", NULL), FLOAT("high", "1", NULL)},
     .build = build_random_uniform,
     .flags = OP_RANDOM},
    {.name = "place",
     .kernel = "rng",
     .expr = "gp_random_place(run, i, parts, span)",
     .dexpr = {"0"},
     .args = {{.name = "x"}, PLACE},
     .flags = OP_ELEMENTWISE | OP_RANDOM | OP_HIDDEN,
     .batch = batch_each},
    {.name = "draw_normal",
     .kernel = "rng",
     .expr = "gp_random_normal_at(run, key, gp_random_place(run, i, parts, span), mean, std)",
     .dexpr = {"0"},
     .args = {{.name = "x"},
              {.name = "mean", .kind = ARG_FLOAT},
              {.name = "std", .kind = ARG_FLOAT},
              PLACE},
     .flags = OP_ELEMENTWISE | OP_RANDOM | OP_FLOAT | OP_HIDDEN,
     .batch = batch_each},
    {.name = "draw_uniform",
     .kernel = "rng",
     .expr = "gp_random_uniform_at(run, key, gp_random_place(run, i, parts, span), low, high)",
     .dexpr = {"0"},
     .args = {{.name = "x"},
              {.name = "low", .kind = ARG_FLOAT},
              {.name = "high", .kind = ARG_FLOAT},
              PLACE},
     .flags = OP_ELEMENTWISE | OP_RANDOM | OP_FLOAT | OP_HIDDEN,
     .batch = batch_each},
    {0},
};
