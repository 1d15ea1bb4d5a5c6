/* Rows of a table, where those of equal layers are written once.
 *
 * Rows that differ in numbers only become a macro, with the number of the layer as its argument:
 * numbers with a constant stride are computed from it, others are arguments of their own. In
 * texts every number may differ, elsewhere those that have a ROW_NUMBER before them. */
#include "codegen/internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ARGUMENTS = 60, /* of a macro */
    LEAST_SAVING = 3,   /* rows that a macro must save */
};

/* A number in a row that may differ. */
typedef struct {
    size_t at, length;
    bool in_text;
} Hole;

typedef struct {
    const char *text;
    ARRAY(Hole) hole;
    uint64_t kind; /* equal where rows differ in these numbers only */
} Row;

typedef struct {
    Arena *arena;
    Row *row;
    Repeat repeat;
    ARRAY(const char **) argument; /* by parameter: its text in each iteration */
    bool has_index;                /* the first is the number of the iteration, or of the layer */
} Group;

/* ---- TableRows
 * ----------------------------------------------------------------------------------- */

void rows_add(TableRows *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ARRAY_PUSH(r->arena, &r->row, arena_vprintf(r->arena, format, args));
    va_end(args);
}

static Row read_row(Arena *arena, const char *text)
{
    Row row = {.kind = 0xcbf29ce484222325};
    Out plain = out_new(arena);
    bool in_text = false;
    for (const char *at = text; *at;) {
        size_t digits = 0;
        if (*at == ROW_NUMBER[0] || (in_text && isdigit((unsigned char)*at))) {
            at += *at == ROW_NUMBER[0];
            digits = strspn(at, "0123456789");
            ARRAY_PUSH(arena, &row.hole, (Hole){plain.length, digits, in_text});
        }
        in_text ^= *at == '"';
        size_t length = digits ? digits : *at == '\\' ? 2 : 1;
        for (size_t i = 0; i < (digits ? 1 : length); i++)
            row.kind = (row.kind ^ (digits ? '#' : (unsigned char)at[i])) * 0x100000001b3;
        out_text(&plain, at, length);
        at += length;
    }
    row.text = plain.at;
    return row;
}

static const char *number_of(const Group *g, Id row, Id hole, Id time)
{
    const Row *r = &g->row[g->repeat.begin + time * g->repeat.period + row];
    return arena_copy(g->arena, r->text + r->hole.at[hole].at, r->hole.at[hole].length);
}

/* ---- Numbers of a group --------------------------------------------------------------------- */

static bool is_constant(const Group *g, const char **column)
{
    for (Id t = 1; t < g->repeat.times; t++)
        if (strcmp(column[t], column[0]) != 0)
            return false;
    return true;
}

static const char **read_column(const Group *g, Id row, Id hole)
{
    const char **column = ARENA_ARRAY(g->arena, const char *, g->repeat.times);
    for (Id t = 0; t < g->repeat.times; t++)
        column[t] = number_of(g, row, hole, t);
    return column;
}

/* The parameter with these arguments, made if there is none yet. */
static size_t find_argument(Group *g, const char **column)
{
    for (size_t i = 0; i < g->argument.count; i++) {
        Id t = 0;
        while (t < g->repeat.times && strcmp(g->argument.at[i][t], column[t]) == 0)
            t++;
        if (t == g->repeat.times)
            return i;
    }
    ARRAY_PUSH(g->arena, &g->argument, column);
    return g->argument.count - 1;
}

/* The first number in a text that differs, or else the number of the iteration. */
static void add_index(Group *g)
{
    for (Id row = 0; row < g->repeat.period; row++) {
        const Row *r = &g->row[g->repeat.begin + row];
        for (Id hole = 0; hole < r->hole.count; hole++) {
            const char **column = read_column(g, row, hole);
            if (r->hole.at[hole].in_text && !is_constant(g, column)) {
                find_argument(g, column);
                return;
            }
        }
    }
    const char **count = ARENA_ARRAY(g->arena, const char *, g->repeat.times);
    for (Id t = 0; t < g->repeat.times; t++)
        count[t] = arena_printf(g->arena, "%u", t);
    find_argument(g, count);
}

/* first + step * i for every iteration. */
static bool is_even(const Group *g, const char **column, int64_t *first, int64_t *step)
{
    const char **index = g->argument.at[0];
    int64_t i0 = strtoll(index[0], NULL, 10), width = strtoll(index[1], NULL, 10) - i0;
    int64_t c0 = strtoll(column[0], NULL, 10), rise = strtoll(column[1], NULL, 10) - c0;
    if (width == 0 || rise % width != 0)
        return false;
    *step = rise / width;
    *first = c0 - *step * i0;
    for (Id t = 0; t < g->repeat.times; t++)
        if (strtoll(column[t], NULL, 10) != *first + *step * strtoll(index[t], NULL, 10))
            return false;
    return *first >= 0;
}

const char *even_text(Arena *arena, int64_t first, int64_t step, const char *index, int64_t last)
{
    int64_t size = step < 0 ? -step : step, most = first + (step < 0 ? 0 : step * last);
    if (size == 1 && first == 0 && step > 0)
        return index;
    bool wide = size * last > INT32_MAX || (first <= INT32_MAX && most > INT32_MAX);
    const char *factor =
        size == 1 ? index
                  : arena_printf(arena, "%lld%s * %s", (long long)size, wide ? "ll" : "", index);
    if (first == 0 && step > 0)
        return factor;
    return arena_printf(arena, "%lld %c %s", (long long)first, step < 0 ? '-' : '+', factor);
}

static const char *parameter_name(const Group *g, size_t i)
{
    return i == 0 ? "i" : arena_printf(g->arena, "n%zu", i);
}

/* The text of a number in the macro. */
static void write_hole(Group *g, Id row, Id hole, Out *o)
{
    const bool in_text = g->row[g->repeat.begin + row].hole.at[hole].in_text;
    const char **column = read_column(g, row, hole);
    int64_t first, step, last = 0;
    for (Id t = 0; t < g->repeat.times; t++)
        if (strtoll(g->argument.at[0][t], NULL, 10) > last)
            last = strtoll(g->argument.at[0][t], NULL, 10);
    if (is_constant(g, column))
        out(o, "%s", column[0]);
    else if (!in_text && is_even(g, column, &first, &step))
        out(o, "%s", even_text(g->arena, first, step, "i", last));
    else
        out(o, in_text ? "\" #%s \"" : "%s", parameter_name(g, find_argument(g, column)));
}

static const char *row_text(Group *g, Id row)
{
    const Row *r = &g->row[g->repeat.begin + row];
    Out o = out_new(g->arena);
    size_t from = 0;
    for (Id hole = 0; hole < r->hole.count; hole++) {
        out_text(&o, r->text + from, r->hole.at[hole].at - from);
        write_hole(g, row, hole, &o);
        from = r->hole.at[hole].at + r->hole.at[hole].length;
    }
    out(&o, "%s", r->text + from);
    return o.at;
}

typedef struct {
    const char *name, *text; /* text: from the parameters on */
} Macro;
typedef ARRAY(Macro) Macros;

/* ---- Macros --------------------------------------------------------------------------------- */

/* The calls of the macro: TENSORS_1(0), TENSORS_1(1). */
static void add_calls(const Group *g, const char *macro, Items *to)
{
    for (Id t = 0; t < g->repeat.times; t++) {
        Out call = out_new(g->arena);
        for (size_t i = 0; i < g->argument.count; i++)
            out(&call, "%s%s", i ? ", " : "", g->argument.at[i][t]);
        ARRAY_PUSH(g->arena, to, arena_printf(g->arena, "%s(%s)", macro, call.at));
    }
}

/* Writes the macro of a group and adds its calls; false where that would be no shorter. */
static bool write_group(Group *g, const char *macro, Macros *macros, Out *o, Items *to)
{
    Items body = {0}, calls = {0};
    size_t long_way = 0, short_way = 0;
    add_index(g);
    for (Id row = 0; row < g->repeat.period; row++) {
        ARRAY_PUSH(g->arena, &body, row_text(g, row));
        short_way += strlen(body.at[row]);
    }
    if (g->argument.count > MAX_ARGUMENTS)
        return false;
    Out text = out_new(g->arena);
    Items parameters = {0};
    const size_t pad = strlen("#define ") + strlen(macro); /* comes before them */
    for (size_t i = 0; i < g->argument.count; i++)
        ARRAY_PUSH(g->arena, &parameters,
                   arena_printf(g->arena, "%*s%s%s", i ? 0 : (int)pad, "", i ? "" : "(",
                                parameter_name(g, i)));
    out_items(&text, "", &parameters, " \\", false);
    text.length--; /* the end of the line */
    out(&text, ") \\\n");
    out_items(&text, "    ", &body, " \\", false);
    for (size_t i = 0; i < macros->count; i++) /* one that is there */
        if (strcmp(macros->at[i].text, text.at) == 0)
            macro = macros->at[i].name;
    add_calls(g, macro, &calls);
    for (size_t i = 0; i < calls.count; i++)
        short_way += strlen(calls.at[i]);
    for (Id i = 0; i < g->repeat.period * g->repeat.times; i++)
        long_way += strlen(g->row[g->repeat.begin + i].text);
    if (short_way > long_way * 2 / 3)
        return false;
    bool known = false;
    for (size_t i = 0; i < macros->count; i++)
        known |= macros->at[i].name == macro;
    if (!known) {
        ARRAY_PUSH(g->arena, macros, (Macro){macro, text.at});
        out(o, "#define %s%s", macro, text.at + pad);
    }
    for (size_t i = 0; i < calls.count; i++)
        ARRAY_PUSH(g->arena, to, calls.at[i]);
    return true;
}

void rows_write(const TableRows *r, Out *o, const char *head, const char *tail)
{
    Row *row = ARENA_ARRAY(r->arena, Row, r->row.count + 1);
    uint64_t *kind = ARENA_ARRAY(r->arena, uint64_t, r->row.count + 1);
    for (size_t i = 0; i < r->row.count; i++) {
        row[i] = read_row(r->arena, r->row.at[i]);
        kind[i] = row[i].kind;
    }
    Repeats repeats = repeats_find(
        r->arena, &(RepeatItems){.kind = kind, .count = (Id)r->row.count, .least = LEAST_SAVING});
    Items items = {0};
    Macros macros = {0};
    Id next = 0;
    for (size_t i = 0; i <= repeats.count; i++) {
        bool last = i == repeats.count;
        Repeat repeat = last ? (Repeat){(Id)r->row.count, 0, 0} : repeats.at[i];
        for (; next < repeat.begin; next++)
            ARRAY_PUSH(r->arena, &items, row[next].text);
        Group group = {.arena = r->arena, .row = row, .repeat = repeat};
        const char *macro = arena_printf(r->arena, "%s_%zu", r->macro, macros.count + 1);
        if (!last && write_group(&group, macro, &macros, o, &items)) {
            next += repeat.period * repeat.times;
        }
    }
    out(o, "%s", head);
    out_items(o, r->indent ? r->indent : "    ", &items, "", true);
    out(o, "%s", tail);
}
