/* Functions that call one kernel and differ in the dims and strides of its operands alone are one
 * function, which takes those numbers as arguments.
 *
 * Requires: all calls once before the first function is written (calls.c), each with its shapes:
 * the text of the function with a mark in place of each number above 1, and the numbers. Leaves:
 * what stands in place of the marks, and the arguments. A stride of 0 or 1 says how an operand
 * lies, and is never an argument. */
#include "codegen/internal.h"

#include <string.h>

enum { MOST_NUMBERS = 6 }; /* that a function takes: with more it says little */

struct ShapeGroup {
    size_t numbers;
    ARRAY(const int64_t *) call; /* the numbers of calls that differ */
};

const char *shape_number(Arena *arena, CallShape *shape, int64_t number)
{
    if (!shape || number < 2)
        return arena_printf(arena, "%lld", (long long)number);
    ARRAY_PUSH(arena, &shape->number, number);
    return SHAPE_NUMBER;
}

void shapes_note(Emission *e, const char *key, const CallShape *shape)
{
    if (shape->number.count == 0) /* nothing that could differ */
        return;
    if (!e->shapes)
        e->shapes = names_new(e->arena);
    uint32_t *id = names_at(e->shapes, key);
    if (*id == UINT32_MAX) {
        *id = (uint32_t)e->shape_group.count;
        ARRAY_PUSH(e->arena, &e->shape_group, ARENA_NEW(e->arena, ShapeGroup));
        e->shape_group.at[*id]->numbers = shape->number.count;
    }
    ShapeGroup *g = e->shape_group.at[*id];
    const size_t bytes = g->numbers * sizeof *shape->number.at;
    for (size_t i = 0; i < g->call.count; i++)
        if (memcmp(g->call.at[i], shape->number.at, bytes) == 0)
            return;
    int64_t *own = ARENA_ARRAY(e->arena, int64_t, g->numbers + 1);
    memcpy(own, shape->number.at, bytes);
    ARRAY_PUSH(e->arena, &g->call, own);
}

/* Whether two numbers are equal in all calls. */
static bool are_equal(const ShapeGroup *g, size_t one, size_t other)
{
    for (size_t i = 0; i < g->call.count; i++)
        if (g->call.at[i][one] != g->call.at[i][other])
            return false;
    return true;
}

static bool is_constant(const ShapeGroup *g, size_t number)
{
    for (size_t i = 1; i < g->call.count; i++)
        if (g->call.at[i][number] != g->call.at[0][number])
            return false;
    return true;
}

void shapes_choose(const Emission *e, const char *key, CallShape *shape)
{
    const uint32_t id = e->shapes ? names_find(e->shapes, key) : UINT32_MAX;
    const ShapeGroup *g = id == UINT32_MAX ? NULL : e->shape_group.at[id];
    shape->text = ARENA_ARRAY(e->arena, const char *, shape->number.count + 1);
    shape->argument = ARENA_ARRAY(e->arena, int64_t, shape->number.count + 1);
    for (size_t i = 0; i < shape->number.count; i++) {
        size_t k = 0;
        shape->text[i] = shape_number(e->arena, NULL, shape->number.at[i]);
        if (!g || is_constant(g, i))
            continue;
        while (!are_equal(g, k, i))
            k++;
        if (k == i)
            shape->argument[shape->arguments++] = shape->number.at[i];
        shape->text[i] =
            k < i ? shape->text[k] : arena_printf(e->arena, "n%u", (unsigned)shape->arguments);
    }
    for (size_t i = 0; i < shape->number.count && shape->arguments > MOST_NUMBERS; i++)
        shape->text[i] = shape_number(e->arena, NULL, shape->number.at[i]);
    shape->arguments = shape->arguments > MOST_NUMBERS ? 0 : shape->arguments;
}

const char *shape_fill(Arena *arena, const CallShape *shape, size_t *next, const char *text)
{
    Out o = out_new(arena);
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, SHAPE_NUMBER);
        out_text(&o, at, length);
        at += length;
        if (*at == SHAPE_NUMBER[0]) {
            out(&o, "%s", shape->text[(*next)++]);
            at++;
        }
    }
    return o.at ? o.at : "";
}
