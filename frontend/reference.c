/* How ops are called, from their rows: for messages and for the table in LANGUAGE.md. */
#include "frontend/lower.h"

#include <string.h>

static bool is_none(const Arg *arg)
{
    return arg->fallback && strcmp(arg->fallback, "none") == 0;
}

static const char *argument_text(Arena *arena, const Arg *arg)
{
    if (arg->flags & ARG_VARIADIC)
        return arena_printf(arena, "%s, ...", arg->name);
    if (arg->flags & (ARG_OPTIONAL | ARG_PARAM) || is_none(arg))
        return arena_printf(arena, "[%s]", arg->name);
    return arg->fallback ? arena_printf(arena, "%s = %s", arg->name, arg->fallback) : arg->name;
}

/* What must be given first, then what may be, settings before tensors; last what has a default. */
static int rank_of(const Arg *arg)
{
    if (arg->kind == ARG_TENSOR)
        return arg->flags & (ARG_OPTIONAL | ARG_PARAM) ? 2 : 0;
    if (!arg->fallback)
        return 0;
    return is_none(arg) ? 1 : 3;
}

const char *op_signature(Arena *arena, const OpRow *op)
{
    const char *text = arena_printf(arena, "%s(", op->name);
    bool any = false;
    for (int rank = 0; rank < 4; rank++)
        for (int i = 0; i < MAX_ARGS && op->args[i].name; i++) {
            const Arg *arg = &op->args[i];
            if (arg->flags & ARG_HIDDEN || rank_of(arg) != rank)
                continue;
            text = arena_printf(arena, "%s%s%s", text, any ? ", " : "", argument_text(arena, arg));
            any = true;
        }
    return arena_printf(arena, "%s)", text);
}

/* A | would end the cell of the table. */
static void write_cell(FILE *to, const char *text)
{
    for (; *text; text++)
        fprintf(to, *text == '|' ? "\\%c" : "%c", *text);
}

static void write_argument(FILE *to, const Arg *arg, bool *any)
{
    if (arg->flags & ARG_HIDDEN || (!arg->help && (!arg->words || arg->kind == ARG_TENSOR)))
        return;
    fprintf(to, "%s`%s`", *any ? "; " : "", arg->name);
    if (arg->words && arg->kind != ARG_TENSOR) {
        fprintf(to, arg->kind == ARG_WORD ? ":" : ": numbers or");
        for (const char *at = arg->words; *at; at += strspn(at, " ")) {
            int span = (int)strcspn(at, " ");
            fprintf(to, " `%.*s`", span, at);
            at += span;
        }
    }
    if (arg->help) {
        fprintf(to, arg->words && arg->kind != ARG_TENSOR ? ", " : ": ");
        write_cell(to, arg->help);
    }
    *any = true;
}

void ops_reference(FILE *to)
{
    Arena *arena = arena_new();
    fprintf(to, "| op | what it is | arguments |\n|---|---|---|\n");
    for (size_t i = 0; op_at(i); i++) {
        const OpRow *op = op_at(i);
        if (op->flags & OP_HIDDEN)
            continue;
        fprintf(to, "| `%s` | ", op_signature(arena, op));
        write_cell(to, op->help ? op->help : "");
        fprintf(to, " | ");
        bool any = false;
        for (int j = 0; j < MAX_ARGS && op->args[j].name; j++)
            write_argument(to, &op->args[j], &any);
        fprintf(to, " |\n");
    }
    arena_free(arena);
}
