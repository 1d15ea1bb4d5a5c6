/* The functions that run the calls of a program, one after the other.
 *
 * Runs of calls that repeat (the layers of a deep model) are written once, as a loop over a
 * table of what changes between the turns. Long lists are cut into several functions, since
 * compilers take more than linear time for one. */
#include "codegen/internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIST = 200,       /* calls in one function */
    MAX_PERIOD = 400, /* calls in one turn of a loop */
    LEAST_SAVING = 6, /* calls that a loop must save */
};

/* calls [begin, begin + period * turns) are `turns` times the same functions. */
typedef struct {
    Id begin, period, turns;
} Run;

typedef struct {
    Emission *e;
    Out *o;
    ProgramKind program;
    Id begin, end; /* its calls */
    ARRAY(Run) run;
    uint8_t *taken; /* by call: part of a run */
    uint64_t *kind; /* by call: equal where the calls differ in numbers only */
    Id functions;   /* that were written */
} Writer;

const char *program_name(ProgramKind program)
{
    static const char *const name[PROGRAMS] = {"forward", "eval", "step", "update"};
    return name[program];
}

/* ---- Which calls repeat --------------------------------------------------------------------- */

/* The function, and for each argument whether it lies in the arena or with the caller, and
 * whether it moves with the micro-batch. */
static uint64_t call_kind(const Emission *e, const EmitCall *call)
{
    uint64_t hash = call->function + 1;
    for (Id i = 0; i < call->addresses; i++) {
        const Address *a = &e->address.at[call->address + i];
        hash = hash * 0x100000001b3 + a->kind + 1 + a->turn * 4;
    }
    return hash;
}

static Id saving(Run run)
{
    return run.period * (run.turns - 1);
}

static int by_saving(const void *a, const void *b)
{
    const Run *m = a, *n = b;
    if (saving(*m) != saving(*n))
        return saving(*m) > saving(*n) ? -1 : 1;
    if (m->period != n->period)
        return m->period < n->period ? -1 : 1;
    return (m->begin > n->begin) - (m->begin < n->begin);
}

/* Takes the longest stretch of the run that is still free. */
static void take(Writer *w, Run run)
{
    Id end = run.begin + run.period * run.turns, best = 0, best_begin = 0, begin = run.begin;
    for (Id i = run.begin; i <= end; i++)
        if (i == end || w->taken[i]) {
            if (i - begin > best) {
                best = i - begin;
                best_begin = begin;
            }
            begin = i + 1;
        }
    run.begin = best_begin;
    run.turns = best / run.period;
    if (run.turns < 2 || saving(run) < LEAST_SAVING)
        return;
    memset(w->taken + run.begin, 1, run.period * run.turns);
    ARRAY_PUSH(w->e->arena, &w->run, run);
}

static int by_begin(const void *a, const void *b)
{
    const Run *m = a, *n = b;
    return (m->begin > n->begin) - (m->begin < n->begin);
}

/* For each period, the stretches where every call is like the one a period later: O(calls x
 * MAX_PERIOD). The runs that save most are taken first. */
static void find_runs(Writer *w)
{
    ARRAY(Run) found = {0};
    for (Id period = 1; period <= MAX_PERIOD && period * 2 <= w->end - w->begin; period++)
        for (Id i = w->begin, length = 0; i + period <= w->end; i++) {
            if (i + period < w->end && w->kind[i] == w->kind[i + period]) {
                length++;
                continue;
            }
            Run run = {i - length, period, length / period + 1};
            if (run.turns >= 2 && saving(run) >= LEAST_SAVING)
                ARRAY_PUSH(w->e->arena, &found, run);
            length = 0;
        }
    if (found.count == 0)
        return;
    qsort(found.at, found.count, sizeof *found.at, by_saving);
    for (size_t i = 0; i < found.count; i++)
        take(w, found.at[i]);
    qsort(w->run.at, w->run.count, sizeof *w->run.at, by_begin);
}

/* ---- Calls as text -------------------------------------------------------------------------- */

static void list_names(const Writer *w, Out *o, const char *before, const Id *value, Id count)
{
    for (Id i = 0; i < count; i++)
        out(o, "%s%s", i ? ", " : before, w->e->plan->graph->value.at[value[i]].name);
}

/* h = conv2d: images, conv.w, conv.b */
static void write_comment(Writer *w, const EmitCall *call, const char *indent)
{
    const Clusters *clusters = w->e->plan->clusters;
    const Cluster *c = &clusters->at[call->occurrence->cluster];
    Out o = out_new(w->e->arena);
    list_names(w, &o, "", clusters->result + c->result, c->results);
    for (Id k = 0; k < c->nodes; k++)
        out(&o, "%s%s", k ? ", " : " = ",
            w->e->plan->graph->node.at[clusters->node[c->node + k]].op->name);
    list_names(w, &o, ": ", clusters->operand + c->operand, c->operands);
    out_block(w->o, indent, o.at);
}

/* One number of an argument: a constant, or a column of the run's table. */
static void write_number(Writer *w, uint64_t number, Id column)
{
    if (column == NONE)
        out(w->o, "%llu", (unsigned long long)number);
    else
        out(w->o, "at[%u]", column);
}

static void write_argument(Writer *w, const Address *a, Id column, Id slot_column)
{
    switch (a->kind) {
    case AT_ARENA:
        out(w->o, ", AT(");
        write_number(w, a->offset, column);
        break;
    case AT_EXTERNAL:
        out(w->o, ", EXTERNAL(");
        write_number(w, a->slot, slot_column);
        out(w->o, ", ");
        write_number(w, a->offset, column);
        break;
    default:
        if (column == NONE)
            out(w->o, ", UINT64_C(0x%llx", (unsigned long long)a->offset);
        else
            out(w->o, ", (uint64_t)(at[%u]", column);
    }
    if (a->turn)
        out(w->o, " + (size_t)run->micro * %llu", (unsigned long long)a->turn);
    out(w->o, ")");
}

/* ---- Lists ---------------------------------------------------------------------------------- */

static void begin_function(Writer *w)
{
    out(w->o, "static int %s_%u(%s *m, const gp_run *run)\n{\n    int code;\n",
        program_name(w->program), w->functions++, w->e->api->prefix);
}

static void write_list(Writer *w, Id begin, Id end)
{
    for (Id from = begin; from < end; from += LIST) {
        begin_function(w);
        for (Id i = from; i < end && i < from + LIST; i++) {
            const EmitCall *call = &w->e->call.at[i];
            write_comment(w, call, "    ");
            out(w->o, "    OP(%u, %s(run", i, w->e->function.at[call->function].name);
            for (Id k = 0; k < call->addresses; k++)
                write_argument(w, &w->e->address.at[call->address + k], NONE, NONE);
            out(w->o, "));\n");
        }
        out(w->o, "    return %s_OK;\n}\n\n", w->e->api->capitals);
    }
}

/* ---- Loops ---------------------------------------------------------------------------------- */

typedef struct {
    Writer *w;
    Run run;
    ARRAY(uint64_t *) column; /* by turn */
    uint64_t largest;
} Table;

/* The number of an argument in each turn. */
static uint64_t number_at(const Table *t, Id call, Id argument, bool slot, Id turn)
{
    const Emission *e = t->w->e;
    const EmitCall *c = &e->call.at[t->run.begin + turn * t->run.period + call];
    const Address *a = &e->address.at[c->address + argument];
    return slot ? a->slot : a->offset;
}

/* The column that holds these numbers, made where there is none yet; NONE where all are equal. */
static Id find_column(Table *t, Id call, Id argument, bool slot)
{
    Arena *arena = t->w->e->arena;
    uint64_t *number = ARENA_ARRAY(arena, uint64_t, t->run.turns);
    bool equal = true;
    for (Id turn = 0; turn < t->run.turns; turn++) {
        number[turn] = number_at(t, call, argument, slot, turn);
        equal &= number[turn] == number[0];
    }
    if (equal)
        return NONE;
    for (size_t i = 0; i < t->column.count; i++)
        if (memcmp(t->column.at[i], number, t->run.turns * sizeof *number) == 0)
            return (Id)i;
    for (Id turn = 0; turn < t->run.turns; turn++)
        t->largest = number[turn] > t->largest ? number[turn] : t->largest;
    ARRAY_PUSH(arena, &t->column, number);
    return (Id)(t->column.count - 1);
}

static void write_table(Table *t)
{
    Out *o = t->w->o;
    if (t->column.count == 0)
        return;
    out(o, "    static const %s table[%u][%zu] = {\n",
        t->largest <= UINT32_MAX ? "uint32_t" : "uint64_t", t->run.turns, t->column.count);
    for (Id turn = 0; turn < t->run.turns; turn++) {
        size_t line = o->length;
        out(o, "        {");
        for (size_t i = 0; i < t->column.count; i++) {
            bool wrap = o->length - line > 86;
            out(o, "%s%s%llu%s", i ? "," : "",
                !i     ? ""
                : wrap ? "\n         "
                       : " ",
                (unsigned long long)t->column.at[i][turn],
                t->column.at[i][turn] > INT64_MAX ? "u" : "");
            line = wrap ? o->length : line;
        }
        out(o, "},\n");
    }
    out(o, "    };\n");
}

static void write_turn(Table *t, Out *body)
{
    Writer *w = t->w;
    Out *kept = w->o;
    w->o = body;
    for (Id i = 0; i < t->run.period; i++) {
        const EmitCall *call = &w->e->call.at[t->run.begin + i];
        write_comment(w, call, "        ");
        out(body, "        OP(%u + turn * %u, %s(run", t->run.begin + i, t->run.period,
            w->e->function.at[call->function].name);
        for (Id k = 0; k < call->addresses; k++) {
            const Address *a = &w->e->address.at[call->address + k];
            Id slot = a->kind == AT_EXTERNAL ? find_column(t, i, k, true) : NONE;
            write_argument(w, a, find_column(t, i, k, false), slot);
        }
        out(body, "));\n");
    }
    w->o = kept;
}

static void write_run(Writer *w, Run run)
{
    Table t = {.w = w, .run = run};
    Out body = out_new(w->e->arena);
    write_turn(&t, &body);
    out(w->o, "/* %u turns of %u ops; the names are those of the first. */\n", run.turns,
        run.period);
    begin_function(w);
    write_table(&t);
    out(w->o, "    for (int turn = 0; turn < %u; turn++) {\n", run.turns);
    if (t.column.count)
        out(w->o, "        const %s *const at = table[turn];\n",
            t.largest <= UINT32_MAX ? "uint32_t" : "uint64_t");
    out(w->o, "%s    }\n    return %s_OK;\n}\n\n", body.at, w->e->api->capitals);
}

static void write_program(Writer *w)
{
    find_runs(w);
    Id next = w->begin;
    for (size_t i = 0; i < w->run.count; i++) {
        write_list(w, next, w->run.at[i].begin);
        write_run(w, w->run.at[i]);
        next = w->run.at[i].begin + w->run.at[i].period * w->run.at[i].turns;
    }
    write_list(w, next, w->end);
}

void program_write(Emission *e, Out *o)
{
    Id count = (Id)e->call.count;
    uint8_t *taken = ARENA_ARRAY(e->arena, uint8_t, count + 1);
    uint64_t *kind = ARENA_ARRAY(e->arena, uint64_t, count + 1);
    for (Id i = 0; i < count; i++)
        kind[i] = call_kind(e, &e->call.at[i]);
    for (int p = 0; p < PROGRAMS; p++) {
        Writer w = {.e = e,
                    .o = o,
                    .program = (ProgramKind)p,
                    .begin = e->program[p].call,
                    .end = e->program[p].call + e->program[p].calls,
                    .taken = taken,
                    .kind = kind};
        write_program(&w);
        e->program[p].functions = w.functions;
    }
}
