/* The settings of kernels as C structs, written from the rows: gp_NAME_attr of every kernel that
 * takes some, a field for each setting in the row's order. Ops with the same settings share one
 * struct under a name each, so that one function can serve them. */
#include "codegen/internal.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 99 };

/* The first setting from argument i on; MAX_ARGS: no setting. */
static int next_setting(const OpRow *op, int i)
{
    for (; i < MAX_ARGS && op->args[i].name; i++)
        if (arg_is_setting(&op->args[i]))
            return i;
    return MAX_ARGS;
}

static bool is_same_field(const Arg *a, const Arg *b)
{
    return strcmp(a->name, b->name) == 0 && (a->kind == ARG_FLOAT) == (b->kind == ARG_FLOAT) &&
           (a->kind == ARG_INTS ? a->count : 0) == (b->kind == ARG_INTS ? b->count : 0);
}

static bool are_same(const OpRow *a, const OpRow *b)
{
    int i = next_setting(a, 0), k = next_setting(b, 0);
    for (; i < MAX_ARGS && k < MAX_ARGS && is_same_field(&a->args[i], &b->args[k]);
         i = next_setting(a, i + 1), k = next_setting(b, k + 1))
        continue;
    return i == MAX_ARGS && k == MAX_ARGS;
}

static const char *attr_name(Arena *arena, const OpRow *op)
{
    return arena_printf(arena, "gp_%s_attr", op->name);
}

static bool has_word(const char *text, const char *word)
{
    for (const char *at = text; (at = strstr(at, word)); at++) {
        char after = at[strlen(word)];
        if ((at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) &&
            !(isalnum((unsigned char)after) || after == '_'))
            return true;
    }
    return false;
}

/* What is the language's is described there; what the rules fill in for the kernel, here. */
static const char *comment_of(const OpRow *op, const Arg *arg)
{
    return op->flags & OP_HIDDEN || arg->flags & ARG_HIDDEN ? arg->help : NULL;
}

/* Settings of one type stand on one line, up to one that has a comment. */
static void write_fields(Out *o, const OpRow *op)
{
    const Arg *last = NULL; /* on this line */
    for (int i = 0; (i = next_setting(op, i)) < MAX_ARGS; i++) {
        const Arg *arg = &op->args[i];
        const char *type = arg->kind == ARG_FLOAT ? "double" : "int64_t";
        if (last && (last->kind == ARG_FLOAT) == (arg->kind == ARG_FLOAT) && !comment_of(op, arg))
            out(o, ", %s", arg->name);
        else
            out(o, "%s    %s %s", last ? ";\n" : "", type, arg->name);
        if (arg->kind == ARG_INTS)
            out(o, "[%d]", arg->count);
        last = arg;
        if (comment_of(op, arg)) {
            out(o, "; /* %s */\n", comment_of(op, arg));
            last = NULL;
        }
    }
    out(o, last ? ";\n" : "");
}

/* The first of some ops with the same settings, and the names of all of them. */
static void write_struct(Out *o, const OpRow *const *op, size_t count)
{
    out(o, "typedef struct {\n");
    write_fields(o, op[0]);
    out(o, "} %s", attr_name(o->arena, op[0]));
    size_t column = strlen("} ") + strlen(attr_name(o->arena, op[0]));
    for (size_t i = 1; i < count; i++) {
        if (!are_same(op[0], op[i]))
            continue;
        const char *name = attr_name(o->arena, op[i]);
        const bool fits = column + strlen(name) + strlen(", ;") < WIDTH;
        column = strlen(name) + (fits ? column + 2 : 4);
        out(o, fits ? ", %s" : ",\n    %s", name);
    }
    out(o, ";\n");
}

void settings_write(Out *o, const char *program, const char *kernels)
{
    ARRAY(const OpRow *) op = {0};
    for (size_t i = 0; op_at(i); i++) {
        const OpRow *at = op_at(i);
        if (op_has_kernel(at) && next_setting(at, 0) < MAX_ARGS &&
            (!program || has_word(program, attr_name(o->arena, at)) ||
             has_word(kernels, attr_name(o->arena, at))))
            ARRAY_PUSH(o->arena, &op, at);
    }
    if (op.count)
        out(o, "/* Settings of kernels. */\n");
    for (size_t i = 0; i < op.count; i++) {
        size_t before = 0;
        while (before < i && !are_same(op.at[before], op.at[i]))
            before++;
        if (before == i)
            write_struct(o, op.at + i, op.count - i);
    }
    if (op.count)
        out(o, "\n");
}
