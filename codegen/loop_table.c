/* The tables of loops over layers: what does not move evenly from one iteration to the next stands
 * in a row for each. A loop that passes over the same numbers as an earlier one reads its table,
 * from the end where it passes over the layers the other way, as the update does after the backward
 * pass. */
#include "codegen/internal.h"

#include <string.h>

const char *loop_column(LoopTable *t, uint64_t *number, bool moves, const char *wanted)
{
    Arena *arena = t->names.arena;
    Out key = out_new(arena);
    for (Id k = 0; k < t->times; k++)
        out(&key, "%llu ", (unsigned long long)number[k]);
    Names safe = {.arena = arena}; /* a member may be called as a function is, but no keyword */
    const char *name = place_name(&t->names, name_claim(&safe, place_word(arena, wanted)),
                                  (Place){.address = key.at});
    if (t->column.count < t->names.place.count)
        ARRAY_PUSH(arena, &t->column, (LoopColumn){name, number, moves});
    return name;
}

/* Whether one column has the numbers of another, `back`: from the end. */
static bool is_same(const LoopColumn *a, const LoopColumn *b, Id times, bool back)
{
    for (Id k = 0; k < times; k++)
        if (a->number[k] != b->number[back ? times - 1 - k : k])
            return false;
    return strcmp(a->name, b->name) == 0;
}

/* Whether a table has all columns of another one. */
static bool has_all(const LoopTable *table, const LoopTable *wanted, bool back)
{
    if (table->times != wanted->times)
        return false;
    for (size_t i = 0; i < wanted->column.count; i++) {
        size_t k = 0;
        while (k < table->column.count &&
               !is_same(&wanted->column.at[i], &table->column.at[k], wanted->times, back))
            k++;
        if (k == table->column.count)
            return false;
    }
    return true;
}

bool loop_table_has(const LoopTable *table, const LoopTable *wanted)
{
    bool same = table->times == wanted->times && table->column.count == wanted->column.count;
    for (size_t i = 0; same && i < wanted->column.count; i++)
        same = memcmp(table->column.at[i].number, wanted->column.at[i].number,
                      wanted->times * sizeof(uint64_t)) == 0;
    return same;
}

static void write_table(const LoopTable *t, Out *o)
{
    Arena *arena = t->names.arena;
    Items names = {0};
    uint64_t largest = 0;
    TableRows rows = {.arena = arena, .macro = arena_printf(arena, "ROWS_%u", t->id)};
    for (size_t i = 0; i < t->column.count; i++)
        ARRAY_PUSH(arena, &names, t->column.at[i].name);
    for (Id k = 0; k < t->times; k++) {
        Out row = out_new(arena);
        for (size_t i = 0; i < t->column.count; i++) {
            uint64_t number = t->column.at[i].number[k];
            largest = number > largest ? number : largest;
            const bool moves = t->many && t->column.at[i].moves;
            out(&row, "%s%s%llu%s", i ? ", " : "{", moves ? ROW_NUMBER : "",
                (unsigned long long)number, number > INT64_MAX ? "u" : "");
        }
        rows_add(&rows, "%s}", row.at);
    }
    Out head = out_new(arena);
    out(&head, "static const struct rows_%u {\n", t->id);
    out_list(&head, largest <= UINT32_MAX ? "    uint32_t " : "    uint64_t ", &names, ";\n", 8);
    out(&head, "} rows_%u[%u] = {\n", t->id, t->times);
    rows_write(&rows, o, head.at, "};\n\n");
}

const char *loop_table_use(LoopTables *tables, const LoopTable *t, bool down, Out *o)
{
    Arena *arena = t->names.arena;
    const char *use = "    const struct rows_%u *row = &rows_%u[%s];\n";
    if (t->column.count == 0)
        return "";
    for (size_t i = 0; i < tables->count; i++)
        for (int back = 0; back <= 1; back++) {
            const LoopTable *made = &tables->at[i];
            const char *index = back != down ? arena_printf(arena, "%u - i", t->times - 1) : "i";
            if (has_all(made, t, back))
                return arena_printf(arena, use, made->id, made->id, index);
        }
    ARRAY_PUSH(arena, tables, *t);
    write_table(t, o);
    return arena_printf(arena, use, t->id, t->id,
                        down ? arena_printf(arena, "%u - i", t->times - 1) : "i");
}
