/* The functions that run the calls of a program, one after the other: the network as it is read.
 *
 * Calls that repeat (the layers of a deep model) are written once, as a loop. What moves evenly
 * from one iteration to the next is computed from the layer's number, what does not is in a table
 * of rows. Over the calls stands the line of the model that they came from. Long lists are cut
 * into several functions, since compilers take more than linear time for one. */
#include "codegen/program.h"

#include <ctype.h>
#include <string.h>

enum {
    LIST = 200, /* calls in one function */
    WIDTH = 99,
    MANY_LAYERS = 4095, /* numbers of layers that an address must take, whoever names it */
};

const char *program_name(ProgramKind program)
{
    static const char *const name[PROGRAMS] = {"prepare", "forward", "eval", "step", "update"};
    return name[program];
}

static const Node *last_node(const Emission *e, const EmitCall *call)
{
    const Clusters *clusters = e->plan->clusters;
    const Cluster *c = &clusters->at[call->occurrence->cluster];
    return &e->plan->graph->node.at[clusters->node[c->node + c->nodes - 1]];
}

/* ---- Which calls repeat --------------------------------------------------------------------- */

/* The function, and for each argument whether it lies in the arena or with the caller, and
 * whether it moves with the micro-batch; `exact`: also how many numbers there are. */
uint64_t call_kind(const Emission *e, const EmitCall *call, bool exact)
{
    uint64_t hash = call->function + 1;
    for (Id i = 0; i < call->addresses; i++) {
        const Address *a = &e->address.at[call->address + i];
        hash =
            hash * 0x100000001b3 + a->kind + 1 + a->micro_stride * 8 + (a->ring ? 0x9e3779b9 : 0);
        const bool count = a->kind == AT_NUMBER && strcmp(a->role, "count") == 0;
        const bool shape = a->kind == AT_NUMBER && a->role[0] == 'n'; /* n1, n2 */
        if (shape || (exact && count))
            hash = hash * 0x100000001b3 + a->offset;
    }
    return hash;
}

Id call_group(const Emission *e, const EmitCall *call)
{
    const Graph *g = e->plan->graph;
    Id scope = last_node(e, call)->scope;
    while (scope != NONE && scope != 0 && g->scope.at[scope].parent != 0 &&
           g->scope.at[scope].parent != NONE)
        scope = g->scope.at[scope].parent;
    return scope;
}

/* ---- The model's own lines ------------------------------------------------------------------ */

/* By number, from 1 on. */
static const char *const *source_lines(const Emission *e)
{
    const Source *source = e->plan->graph->source;
    if (!source)
        return NULL;
    Items lines = {0};
    ARRAY_PUSH(e->arena, &lines, "");
    for (const char *at = source->text; *at;) {
        size_t length = strcspn(at, "\n");
        ARRAY_PUSH(e->arena, &lines, arena_copy(e->arena, at, length));
        at += length + (at[length] == '\n');
    }
    return lines.at;
}

/* gpt2.g:11: x = x + attention(layernorm(x)), once for the calls that came from it. */
static void write_line(Writer *w, const EmitCall *call, const char *indent)
{
    static const char *const pass[] = {"", ", backward", ", update"};
    const Node *node = last_node(w->e, call);
    if (!w->lines || node->span.line == 0 ||
        (w->line == node->span.line && w->phase == node->phase))
        return;
    w->line = node->span.line;
    w->phase = node->phase;
    uint32_t number;
    const char *file = source_line(w->e->plan->graph->source, w->line, &number);
    const char *text = w->lines[w->line];
    while (isspace((unsigned char)*text))
        text++;
    file = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    char *note = arena_printf(w->e->arena, "%s:%u%s: %s", file, number, pass[node->phase], text);
    size_t length = strlen(note), room = WIDTH - strlen(indent) - strlen("/*  */");
    while (length && isspace((unsigned char)note[length - 1]))
        length--;
    if (length > room)
        memcpy(note + room - 3, "...", 3);
    note[length > room ? room : length] = 0;
    out(w->o, "%s/* ", indent);
    out_comment(w->o, note);
    out(w->o, " */\n");
}

/* ---- Functions ------------------------------------------------------------------------------ */

static void end_function(Writer *w)
{
    if (w->open)
        out(w->o, "    return %s_OK;\n}\n\n", w->e->api->capitals);
    w->open = false;
}

/* Of so many calls: in the function at hand, or a new one. */
static void begin_calls(Writer *w, Id calls)
{
    if (w->open && w->written + calls > LIST)
        end_function(w);
    if (!w->open) {
        const Emission *e = w->e;
        const char *name = program_name(w->program), *number = "";
        if (e->program[w->program].functions != 1)
            number = arena_printf(e->arena, "_%u", w->functions);
        out(w->o, "static int %s%s(%s *m, const gp_run *run)\n{\n    int code;\n", name, number,
            e->api->prefix);
        if (w->functions++ == 0 && e->program[w->program].shared)
            out(w->o, "    if ((code = forward(m, run)) != %s_OK)\n        return code;\n",
                e->api->capitals);
        w->written = 0;
        w->line = 0;
    }
    w->open = true;
    w->written += calls;
}

static void write_call(Writer *w, const EmitCall *call, const char *number, const Items *argument,
                       const char *indent)
{
    write_line(w, call, indent);
    const char *name = w->e->function.at[call->function].name;
    out_list(w->o, arena_printf(w->e->arena, "%sOP(%s, %s(", indent, number, name), argument,
             "));\n", strlen(indent) + 4);
}

static void write_single(Writer *w, Id i, const char *indent)
{
    const EmitCall *call = &w->e->call.at[i];
    Items argument = {0};
    ARRAY_PUSH(w->e->arena, &argument, "run");
    for (Id k = 0; k < call->addresses; k++)
        ARRAY_PUSH(w->e->arena, &argument,
                   argument_single(w, &w->e->address.at[call->address + k]));
    write_call(w, call, arena_printf(w->e->arena, "%u", i), &argument, indent);
}

static void write_list(Writer *w, Id begin, Id end)
{
    const Emission *e = w->e;
    for (Id i = begin; i < end; i++) {
        if (e->call.at[i].before != NONE)
            continue;
        begin_calls(w, 1);
        for (size_t k = 0; k < e->guest.count; k++) /* where the loop was none after all */
            if (e->call.at[e->guest.at[k]].before == i)
                write_single(w, e->guest.at[k], "    ");
        write_single(w, i, "    ");
    }
}

/* What all iterations write alike. */
static void write_loop_call(Writer *w, Id call, const char *indent)
{
    Arena *arena = w->e->arena;
    const EmitCall *c = &w->e->call.at[w->repeat.begin + call];
    Items argument = {0};
    ARRAY_PUSH(arena, &argument, "run");
    for (Id k = 0; k < c->addresses; k++)
        ARRAY_PUSH(arena, &argument, argument_in_loop(w, call, k));
    write_call(w, c, iteration_text(w, w->repeat.begin + call, w->repeat.period), &argument,
               indent);
}

/* The loop's variable in an iteration. */
static Id index_of(const Writer *w, Id time)
{
    return w->down ? w->repeat.times - 1 - time : time;
}

/* What runs before a call of the loop in one iteration alone: a guest, or a call of the loop. */
static void write_guests(Writer *w, Id call)
{
    const Emission *e = w->e;
    const Repeat r = w->repeat;
    for (size_t i = 0; i < e->guest.count; i++) {
        const Id id = e->guest.at[i], before = e->call.at[id].before;
        if (before < r.begin || before >= r.begin + r.period * r.times ||
            (before - r.begin) % r.period != call)
            continue;
        const Id time = (before - r.begin) / r.period, own = r.begin + time * r.period;
        write_line(w, &e->call.at[id], "        ");
        out(w->o, "        if (i == %u)\n", index_of(w, time));
        if (id >= own && id < own + r.period)
            write_loop_call(w, id - own, "            ");
        else
            write_single(w, id, "            ");
    }
}

/* A call of the loop, but not in iterations where it runs earlier or later. */
static void write_member(Writer *w, Id call)
{
    const Repeat r = w->repeat;
    Out but = out_new(w->e->arena);
    for (Id t = 0; t < r.times; t++)
        if (w->e->call.at[r.begin + t * r.period + call].before != NONE)
            out(&but, "%si != %u", but.length ? " && " : "", index_of(w, t));
    if (but.length == 0) {
        write_loop_call(w, call, "        ");
        return;
    }
    write_line(w, &w->e->call.at[r.begin + call], "        ");
    out(w->o, "        if (%s)\n", but.at);
    write_loop_call(w, call, "            ");
}

static void write_loop(Writer *w, Repeat repeat)
{
    Arena *arena = w->e->arena;
    Out *kept = w->o, body = out_new(arena);
    begin_calls(w, repeat.period);
    w->repeat = repeat;
    w->down = false;
    w->down = !w->tensors && loop_goes_down(w);
    w->table = (LoopTable){
        .id = w->e->tables, .times = repeat.times, .many = w->tensors, .names = {.arena = arena}};
    w->o = &body;
    w->line = 0;
    for (Id i = 0; i < repeat.period; i++) {
        write_guests(w, i);
        write_member(w, i);
    }
    w->o = kept;
    w->line = 0;
    if (w->down)
        out(w->o, "    for (int i = %u; i >= 0; i--) {\n", repeat.times - 1);
    else
        out(w->o, "    for (int i = 0; i < %u; i++) {\n", repeat.times);
    const size_t tables = w->tables.count;
    const char *row = loop_table_use(&w->tables, &w->table, w->down, &w->rows);
    if (w->tables.count > tables && w->tensors)
        ARRAY_PUSH(arena, &w->e->list_table, w->tables.at[tables]);
    w->e->tables += w->tables.count > tables;
    out(w->o, "%s%s%s    }\n", *row ? "    " : "", row, body.at);
}

/* Calls between two loops: those that are alike but for counts can be one too. */
static void write_between(Writer *w, Id begin, Id end, const uint64_t *kind)
{
    const Emission *e = w->e;
    Repeats repeats = repeats_find(e->arena, &(RepeatItems){.kind = kind + begin,
                                                            .group = w->group + begin,
                                                            .count = end - begin,
                                                            .least = LEAST_CALLS_SAVED});
    Id next = begin;
    for (size_t i = 0; i <= repeats.count; i++) {
        Repeat repeat = i < repeats.count ? repeats.at[i] : (Repeat){end - begin, 0, 0};
        repeat.begin += begin;
        if (kind == w->kind)
            write_between(w, next, repeat.begin, w->like);
        else
            write_list(w, next, repeat.begin);
        if (repeat.times)
            write_loop(w, repeat);
        next = repeat.begin + repeat.period * repeat.times;
    }
}

static void write_program(Writer *w)
{
    const Id begin = w->e->program[w->program].call, end = begin + w->e->program[w->program].calls;
    for (Id next = begin + w->e->program[w->program].shared;;) {
        const Repeat loop = tensor_loop_find(w->e, next, end);
        write_between(w, next, loop.begin, w->kind);
        if (loop.times == 0)
            break;
        w->tensors = w->e->loops_tensors = true;
        write_loop(w, loop);
        w->tensors = false;
        next = loop.begin + loop.times;
    }
    end_function(w);
}

/* Where the loss of a program is. */
static uint64_t loss_offset(const Emission *e, ProgramKind program)
{
    const Plan *plan = e->plan;
    const Graph *g = plan->graph;
    for (size_t i = 0; i < g->output.count; i++) {
        Use use = g->output.at[i].use;
        Id node = g->value.at[use.value].node;
        if (!g->output.at[i].loss || node == NONE || g->node.at[node].program != program)
            continue;
        View view = access_view(plan, use, plan->output[i]);
        return access_address(e->api, plan->output[i], &view).offset;
    }
    return 0;
}

/* What the loss of a program is called, so that those who run it can name it. */
static const char *name_loss(Emission *e, ProgramKind program)
{
    if (!(program == PROGRAM_EVAL && e->api->runs[RUN_EVAL]) &&
        !(program == PROGRAM_STEP && e->api->runs[RUN_STEP]))
        return "";
    Place place = {.address = arena_printf(e->arena, "m->arena + %llu",
                                           (unsigned long long)loss_offset(e, program))};
    return place_name(&e->places, "loss", place);
}

/* The program as one function, of those that it was cut into. */
static void join_functions(const Writer *w)
{
    const char *name = program_name(w->program), *ok = w->e->api->capitals;
    out(w->o, "static int %s(%s *m, const gp_run *run)\n{\n", name, w->e->api->prefix);
    if (w->functions == 0)
        out(w->o, "    (void)m;\n    (void)run;\n    return %s_OK;\n}\n\n", ok);
    for (Id i = 0; i < w->functions; i++) {
        out(w->o, i ? "    if (code == %s_OK)\n        code = " : "    int code = ", ok);
        out(w->o, "%s_%u(m, run);\n", name, i);
    }
    if (w->functions)
        out(w->o, "    return code;\n}\n\n");
}

/* All programs. What the first pass finds, the second knows from the start: places that loops name,
 * and in how many functions a program is cut. */
static void write_programs(const Writer *common, bool last, Out *o)
{
    Emission *e = common->e;
    for (size_t i = 0; i < e->places.place.count; i++)
        e->places.place.at[i].used = false;
    e->tables = 0;
    e->list_table.count = 0;
    for (int p = 0; p < PROGRAMS; p++) {
        Writer w = *common;
        Out text = out_new(e->arena);
        w.o = &text;
        w.rows = out_new(e->arena);
        w.program = (ProgramKind)p;
        e->program[p].loss = name_loss(e, w.program);
        write_program(&w);
        bool wanted = p == PROGRAM_UPDATE    ? e->program[p].calls > 0
                      : p == PROGRAM_EVAL    ? e->api->runs[RUN_EVAL]
                      : p == PROGRAM_STEP    ? e->api->runs[RUN_STEP]
                      : p == PROGRAM_PREPARE ? e->program[p].calls > 0
                                             : e->api->runs[RUN_FORWARD];
        if (w.functions > 1 || (wanted && w.functions == 0))
            join_functions(&w);
        e->program[p].functions = w.functions;
        if (last)
            places_write(&e->places, o);
        out_text(o, w.rows.at, w.rows.length);
        out_text(o, text.at, text.length);
    }
}

void program_write(Emission *e, Out *o)
{
    Id count = (Id)e->call.count;
    uint64_t *kind = ARENA_ARRAY(e->arena, uint64_t, count + 1);
    uint64_t *like = ARENA_ARRAY(e->arena, uint64_t, count + 1);
    Id *group = ARENA_ARRAY(e->arena, Id, count + 1);
    Out first = out_new(e->arena);
    for (Id i = 0; i < count; i++) {
        kind[i] = call_kind(e, &e->call.at[i], true);
        like[i] = call_kind(e, &e->call.at[i], false);
        group[i] = call_group(e, &e->call.at[i]);
    }
    Writer common = {.e = e,
                     .kind = kind,
                     .like = like,
                     .group = group,
                     .lines = source_lines(e),
                     .values = argument_names(e)};
    e->places.arena = e->arena;
    write_programs(&common, false, &first);
    write_programs(&common, true, o);
}
