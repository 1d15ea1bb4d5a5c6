/* `gplan params`: what a model has to learn, and what it has besides. */
#include "frontend/command/kinds.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a value is, as the file of parameters has it; the order of the totals. */
typedef enum { TRAINABLE, FROZEN, RUNNING, CONSTANT, PARAM_KINDS } ParamKind;

static const char *const kind_name[PARAM_KINDS] = {"trainable", "frozen", "running state", "const"};

typedef struct {
    size_t tensors;
    uint64_t numbers, bytes;
} Total;

static bool is_listed(const Value *value)
{
    return value->kind == VALUE_PARAM || value->kind == VALUE_CONST || value->kind == VALUE_STATE;
}

static ParamKind kind_of(const Value *value)
{
    if (value->kind != VALUE_PARAM)
        return value->kind == VALUE_CONST ? CONSTANT : RUNNING;
    return value->frozen || !dtype_is_real((Dtype)value->dtype) ? FROZEN : TRAINABLE;
}

/* What an import says of the weights of its file. */
static void explain(Graph *g, const OnnxImport *import)
{
    static const char *const others[] = {[WEIGHT_TRAINED] = NULL,
                                         [WEIGHT_FROZEN] = "of no layer that learns",
                                         [WEIGHT_STATE] = NULL,
                                         [WEIGHT_CONST] = "a constant of the file"};
    for (size_t i = 0; i < import->weight.count; i++) {
        const OnnxWeight *weight = &import->weight.at[i];
        Id value = graph_find(g, weight->name);
        if (value == NONE)
            continue;
        g->value.at[value].why = weight->role ? weight->role : others[weight->kind];
        if (weight->kind == WEIGHT_STATE) /* in the text it is a param that takes no gradient */
            g->value.at[value].kind = VALUE_STATE;
    }
}

static const char *reason(Arena *arena, const Value *value)
{
    if (value->why)
        return value->why;
    if (value->kind == VALUE_PARAM && !dtype_is_real((Dtype)value->dtype))
        return arena_printf(arena, "%s has no gradient", dtype_name((Dtype)value->dtype));
    if (value->layer)
        return arena_printf(arena, "%s of %s", value->layer->args[value->arg].name,
                            value->layer->name);
    return "";
}

/* [3, 4]: the shape without its dtype, which stands in a column of its own. */
static const char *dims_text(Arena *arena, const Value *value)
{
    return strchr(shape_text(arena, (Dtype)value->dtype, value->rank, value->dim), '[');
}

static void count(const Graph *g, Total total[PARAM_KINDS])
{
    for (size_t i = 0; i < g->value.count; i++) {
        const Value *value = &g->value.at[i];
        if (!is_listed(value))
            continue;
        Total *t = &total[kind_of(value)];
        t->tensors++;
        t->numbers += (uint64_t)value_count(value);
        t->bytes += value_bytes(value);
    }
}

/* ---- A table to read ------------------------------------------------------------------------- */

enum { COLUMNS = 6, NUMBERS = 3 }; /* which of them holds numbers */

static void row_text(Arena *arena, const Value *value, const char *cell[COLUMNS])
{
    cell[0] = value->name;
    cell[1] = dtype_name((Dtype)value->dtype);
    cell[2] = dims_text(arena, value);
    cell[3] = arena_printf(arena, "%llu", (unsigned long long)value_bytes(value));
    cell[4] = kind_name[kind_of(value)];
    cell[5] = reason(arena, value);
}

static void print_row(const char *const cell[COLUMNS], const int width[COLUMNS])
{
    int last = COLUMNS - 1;
    while (last > 0 && !*cell[last])
        last--;
    for (int c = 0; c <= last; c++)
        printf("%*s%s",
               c == NUMBERS ? width[c]
               : c == last  ? 0
                            : -width[c],
               cell[c], c == last ? "\n" : "  ");
}

static void print_totals(Arena *arena, const Total total[PARAM_KINDS])
{
    puts("");
    for (int k = 0; k < PARAM_KINDS; k++)
        if (total[k].tensors)
            printf("%-13s  %zu tensor%s, %llu number%s, %s\n", kind_name[k], total[k].tensors,
                   total[k].tensors == 1 ? "" : "s", (unsigned long long)total[k].numbers,
                   total[k].numbers == 1 ? "" : "s", size_text(arena, total[k].bytes));
}

static void print_table(Arena *arena, const Graph *g, const Total total[PARAM_KINDS])
{
    static const char *const head[COLUMNS] = {"name", "dtype", "shape", "bytes", "kind", "why"};
    int width[COLUMNS];
    const char *cell[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        width[c] = (int)strlen(head[c]);
    for (int print = 0; print < 2; print++) {
        if (print)
            print_row(head, width);
        for (size_t i = 0; i < g->value.count; i++) {
            if (!is_listed(&g->value.at[i]))
                continue;
            row_text(arena, &g->value.at[i], cell);
            for (int c = 0; c < COLUMNS; c++)
                width[c] = (int)strlen(cell[c]) > width[c] ? (int)strlen(cell[c]) : width[c];
            if (print)
                print_row(cell, width);
        }
    }
    print_totals(arena, total);
}

/* ---- For other programs ---------------------------------------------------------------------- */

static void print_field(const char *text)
{
    if (!strpbrk(text, "\",\n")) {
        printf("%s", text);
        return;
    }
    putchar('"');
    for (; *text; text++)
        printf(*text == '"' ? "\"%c" : "%c", *text);
    putchar('"');
}

static void print_csv(Arena *arena, const Graph *g)
{
    const char *cell[COLUMNS];
    puts("name,dtype,shape,bytes,kind,why");
    for (size_t i = 0; i < g->value.count; i++) {
        if (!is_listed(&g->value.at[i]))
            continue;
        row_text(arena, &g->value.at[i], cell);
        for (int c = 0; c < COLUMNS; c++) {
            print_field(cell[c]);
            putchar(c == COLUMNS - 1 ? '\n' : ',');
        }
    }
}

static void print_json(Arena *arena, const Graph *g, const Total total[PARAM_KINDS])
{
    json_set_alloc_funcs(memory_take, free);
    json_t *list = json_array(), *totals = json_object();
    for (size_t i = 0; i < g->value.count; i++) {
        const Value *value = &g->value.at[i];
        if (!is_listed(value))
            continue;
        json_t *shape = json_array();
        for (int d = 0; d < value->rank; d++)
            json_array_append_new(shape, json_integer(value->dim[d]));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:o, s:I, s:s, s:s}", "name", value->name,
                                        "dtype", dtype_name((Dtype)value->dtype), "shape", shape,
                                        "bytes", (json_int_t)value_bytes(value), "kind",
                                        kind_name[kind_of(value)], "why", reason(arena, value)));
    }
    for (int k = 0; k < PARAM_KINDS; k++)
        json_object_set_new(totals, kind_name[k],
                            json_pack("{s:I, s:I, s:I}", "tensors", (json_int_t)total[k].tensors,
                                      "numbers", (json_int_t)total[k].numbers, "bytes",
                                      (json_int_t)total[k].bytes));
    json_t *all =
        json_pack("{s:s, s:o, s:o}", "model", g->name, "parameters", list, "totals", totals);
    json_dumpf(all, stdout, JSON_INDENT(2));
    puts("");
    json_decref(all);
}

/* ---- The command ----------------------------------------------------------------------------- */

int params_main(Arena *arena, const Options *o)
{
    if (o->emit && strcmp(o->emit, "csv") != 0 && strcmp(o->emit, "json") != 0) {
        fprintf(stderr, "gplan params: --emit '%s': expected one of: csv json\n", o->emit);
        return 2;
    }
    bool color = o->color == COLOR_AUTO ? isatty(STDERR_FILENO) : o->color == COLOR_ALWAYS;
    Diag *diag = diag_new(arena, stderr, color);
    Model model;
    OnnxImport *import;
    Graph *g = NULL;
    if (model_read(arena, diag, o, o->input.at, o->input.count, &model, &import))
        g = lower(arena, diag, &model);
    if (!g)
        return 1;
    if (import)
        explain(g, import);
    Total total[PARAM_KINDS] = {0};
    count(g, total);
    if (!o->emit)
        print_table(arena, g, total);
    else if (strcmp(o->emit, "csv") == 0)
        print_csv(arena, g);
    else
        print_json(arena, g, total);
    return 0;
}
