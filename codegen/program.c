/* The functions that run the calls of a program, one after the other: the network as it is read.
 *
 * Calls that repeat (the layers of a deep model) are written once, as a loop. What moves evenly
 * from one iteration to the next is computed from the layer's number, what does not is in a table
 * of rows. Over the calls stands the line of the model that they came from. Long lists are cut
 * into several functions, since compilers take more than linear time for one. */
#include "codegen/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST = 200, /* calls in one function */
    WIDTH = 99,
    LEAST_AFTER_FIRST = 4, /* iterations, of which the first may lie elsewhere */
    MANY_LAYERS = 4095,    /* numbers of layers that an address must take, whoever names it */
};

typedef struct {
    Emission *e;
    Out *o;
    ProgramKind program;
    Id functions; /* that were begun */
    Id written;   /* calls in the one at hand */
    bool open;
    const uint64_t *kind;      /* by call: equal where calls differ in where things lie only */
    const uint64_t *like;      /* and where they may differ in counts too */
    const Id *group;           /* by call: the layer it is of */
    const char *const *lines;  /* of the source; NULL: none */
    const char *const *values; /* what values are called, by value */
    uint32_t line;             /* that was shown last, */
    uint8_t phase;             /* and for which pass */
    Repeat repeat;             /* the loop at hand, */
    bool down;                 /* which counts from the last layer to the first, */
    bool tensors;              /* or over the table of tensors */
    LoopTable table;           /* and its table */
    LoopTables tables;         /* of the loops before it */
    Out rows;                  /* those as text */
} Writer;

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

/* ---- Arguments ------------------------------------------------------------------------------ */

static const char *value_name(const Writer *w, const Address *a)
{
    return a->value == NONE ? "work" : w->values[a->value];
}

/* d.attention/matmul#4/matmul, which is named by the op that made it, is d.attention/matmul#4. */
static const char *without_gradient(Arena *arena, const char *name)
{
    const char *last = strrchr(name, '/');
    if (strncmp(name, "d.", 2) != 0 || !last || last == strchr(name, '/'))
        return name;
    return arena_printf(arena, "%.*s%s", (int)(last - name), name,
                        strrchr(last, '.') ? strrchr(last, '.') : "");
}

/* What values are called, by value; a gradient of a parameter is called after that. */
static const char **whole_names(const Emission *e)
{
    const Graph *g = e->plan->graph;
    const char **name = ARENA_ARRAY(e->arena, const char *, g->value.count + 1);
    for (size_t v = 0; v < g->value.count; v++)
        name[v] = g->value.at[v].name;
    for (size_t n = 0; n < g->node.count; n++) {
        const Node *node = &g->node.at[n];
        if (node->phase != PHASE_UPDATE || node->uses < 2 || node_updates(g, node, 0) != 0)
            continue;
        const Id parameter = node_use(g, node, 0).value, gradient = node_use(g, node, 1).value;
        if (gradient != NONE && strcmp(node->op->args[1].name, "g") == 0)
            name[gradient] = arena_printf(e->arena, "d.%s", g->value.at[parameter].name);
    }
    for (size_t v = 0; v < g->value.count; v++)
        name[v] = without_gradient(e->arena, name[v]);
    return name;
}

/* Names of values, by value, without ordinals that tell nothing apart: attention.0.wq is
 * attention.wq where there is no attention.1. */
static const char *const *value_names(const Emission *e)
{
    const Graph *g = e->plan->graph;
    const char **name = whole_names(e);
    NameTable *second =
        names_new(e->arena); /* names up to the ordinal 1 of what there are two of */
    for (size_t v = 0; v < g->value.count; v++) {
        const char *whole = name[v];
        for (const char *at = whole; (at = strstr(at, ".1")); at++)
            if (strchr("./", at[2]))
                *names_at(second, arena_copy(e->arena, whole, (size_t)(at - whole))) = 1;
    }
    for (size_t v = 0; v < g->value.count; v++) {
        const char *whole = name[v], *from = whole;
        Out o = out_new(e->arena);
        for (const char *at = whole; (at = strstr(at, ".0")); at++) {
            const char *stem = arena_copy(e->arena, whole, (size_t)(at - whole));
            if (!strchr("./", at[2]) || names_find(second, stem) != UINT32_MAX)
                continue;
            out_text(&o, from, (size_t)(at - from));
            from = at + 2;
        }
        out(&o, "%s", from);
        name[v] = o.at;
    }
    return name;
}

/* Which of the micro-batches that are here. */
static const char *window_text(const Writer *w)
{
    return w->e->plan->graph->ranks.here ? "(size_t)run->part" : "(size_t)run->micro";
}

static const char *plus(const Writer *w, const char *base, const char *offset, const Address *a)
{
    const char *sum =
        strcmp(offset, "0") == 0 ? base : arena_printf(w->e->arena, "%s + %s", base, offset);
    return a->micro_stride ? arena_printf(w->e->arena, "%s + %s * %llu", sum,
                                          a->ring ? "m->place" : window_text(w),
                                          (unsigned long long)a->micro_stride)
                           : sum;
}

/* The address as an expression, of an offset and a slot as text. */
static const char *address_text(const Writer *w, const Address *a, const char *offset,
                                const char *slot)
{
    if (a->kind == AT_ARENA)
        return plus(w, "m->arena", offset, a);
    return plus(w, arena_printf(w->e->arena, "(unsigned char *)m->external[%s]", slot), offset, a);
}

static const char *number_text(const Writer *w, uint64_t number)
{
    return arena_printf(w->e->arena, number > INT32_MAX ? "UINT64_C(0x%llx)" : "%llu",
                        (unsigned long long)number);
}

static const char *decimal(const Writer *w, uint64_t number)
{
    return arena_printf(w->e->arena, "%llu", (unsigned long long)number);
}

/* The name without the layer whose number stands at `at`: d.layer.3.x is d.x. */
static const char *without_layer(Arena *arena, const char *name, size_t at)
{
    size_t end = at + strspn(name + at, "0123456789"), begin = at > 1 ? at - 1 : at;
    while (begin && name[begin - 1] != '.' && name[begin - 1] != '/')
        begin--;
    end += name[end] == '.' || name[end] == '/';
    return name[end] || begin ? arena_printf(arena, "%.*s%s", (int)begin, name, name + end) : name;
}

static const char *argument_text(const Writer *w, const Address *a, const char *name)
{
    Arena *arena = w->e->arena;
    if (a->kind == AT_NOWHERE)
        return "NULL";
    if (a->kind == AT_WHOLE_ARENA)
        return "m->arena";
    if (a->kind == AT_NUMBER)
        return number_text(w, a->offset);
    size_t at = strcspn(name, "0123456789");
    if (a->kind == AT_ARENA && !a->micro_stride && name[at]) {
        const char *moved =
            place_of_layer(&w->e->places, place_word(arena, without_layer(arena, name, at)),
                           a->offset, strtoll(name + at, NULL, 10));
        if (moved)
            return moved;
    }
    Place place = {.address = address_text(w, a, decimal(w, a->offset), decimal(w, a->slot))};
    return arena_printf(arena, "AT(%s)", place_name(&w->e->places, place_word(arena, name), place));
}

/* ---- Arguments in a loop -------------------------------------------------------------------- */

static const Address *address_at(const Writer *w, Id call, Id argument, Id time)
{
    const EmitCall *c = &w->e->call.at[w->repeat.begin + time * w->repeat.period + call];
    return &w->e->address.at[c->address + argument];
}

/* first + by * the iteration, in the loop's variable. */
static const char *iteration_text(const Writer *w, int64_t first, int64_t by)
{
    const int64_t last = (int64_t)w->repeat.times - 1;
    return w->down ? even_text(w->e->arena, first + by * last, -by, "i", 0)
                   : even_text(w->e->arena, first, by, "i", 0);
}

/* Where the first number that differs begins in both names; 0 where all else is not equal too, or
 * no number differs. */
static size_t difference(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    while (i && isdigit((unsigned char)a[i - 1]))
        i--;
    size_t m = strspn(a + i, "0123456789"), n = strspn(b + i, "0123456789");
    return m && n && strcmp(a + i + m, b + i + n) == 0 ? i : 0;
}

/* How an argument is numbered: by layer where the names of what it is have one, or by iteration. */
typedef struct {
    const char *name;  /* without the layer */
    int64_t first, by; /* the number in the first iteration, and from one to the next */
} Numbering;

static Numbering find_numbering(const Writer *w, Id call, Id argument)
{
    const int64_t top = (int64_t)w->repeat.times - 1;
    const char *name = value_name(w, address_at(w, call, argument, 0));
    const char *role = address_at(w, call, argument, 0)->role;
    Numbering plain = {name, w->down ? top : 0, w->down ? -1 : 1}, layers = plain;
    size_t at = 0;
    if (role && w->repeat.times > 2) { /* values of several names, not the first of a chain */
        const char *next = value_name(w, address_at(w, call, argument, 1));
        const char *last = value_name(w, address_at(w, call, argument, 2));
        if (strcmp(name, next) != 0 && strcmp(next, last) != 0 && difference(next, last) == 0)
            plain.name = role;
    }
    for (Id t = 1; t < w->repeat.times; t++) {
        const char *other = value_name(w, address_at(w, call, argument, t));
        size_t here = difference(name, other);
        if (here == 0 || (at && here != at))
            return plain;
        at = here;
        int64_t first = strtoll(name + at, NULL, 10), number = strtoll(other + at, NULL, 10);
        if (t == 1)
            layers = (Numbering){name, first, number - first};
        if (number != layers.first + (int64_t)t * layers.by)
            return plain;
    }
    if (layers.by != 1 && layers.by != -1)
        return plain;
    layers.name = without_layer(w->e->arena, name, at);
    return layers;
}

/* first + step * (i) of a layer's number; NULL: it does not move evenly. */
static const char *even(const Writer *w, const uint64_t *number, Numbering n, Place *place)
{
    int64_t step = ((int64_t)number[1] - (int64_t)number[0]) * n.by;
    int64_t first = (int64_t)number[0] - step * n.first, last = MANY_LAYERS;
    for (Id t = 0; t < w->repeat.times; t++) {
        int64_t layer = n.first + n.by * (int64_t)t;
        last = layer > last ? layer : last;
        if ((int64_t)number[t] != first + step * layer)
            return NULL;
    }
    if (first < 0)
        return NULL;
    *place = (Place){.moves = true, .first = first, .step = step};
    return even_text(w->e->arena, first, step, "(i)", last);
}

/* The same but for the first iteration, which lies elsewhere: i == 11 ? other : first + step * i.
 */
static const char *even_after_first(const Writer *w, const uint64_t *number, Numbering n)
{
    if (w->repeat.times < LEAST_AFTER_FIRST)
        return NULL;
    uint64_t *moved = ARENA_ARRAY(w->e->arena, uint64_t, w->repeat.times);
    memcpy(moved, number, w->repeat.times * sizeof *moved);
    moved[0] = 2 * number[1] - number[2];
    Place place;
    const char *rest = number[1] == number[2] ? decimal(w, number[1]) : even(w, moved, n, &place);
    for (Id t = 1; t < w->repeat.times && number[1] == number[2]; t++)
        if (number[t] != number[1])
            return NULL;
    return rest ? arena_printf(w->e->arena, "((i) == %lld ? %llu : %s)", (long long)n.first,
                               (unsigned long long)number[0], rest)
                : NULL;
}

static bool is_constant(const Writer *w, const uint64_t *number)
{
    for (Id t = 1; t < w->repeat.times; t++)
        if (number[t] != number[0])
            return false;
    return true;
}

/* Whether two arguments are the same place in every iteration. */
static bool is_same(const Writer *w, Id call, Id one, Id other)
{
    for (Id t = 0; t < w->repeat.times; t++) {
        const Address *a = address_at(w, call, one, t), *b = address_at(w, call, other, t);
        if (a->kind != b->kind || a->kind == AT_NUMBER || a->offset != b->offset ||
            a->slot != b->slot || a->micro_stride != b->micro_stride)
            return false;
    }
    return true;
}

static const char *loop_argument(Writer *w, Id call, Id argument)
{
    Arena *arena = w->e->arena;
    const Address *a = address_at(w, call, argument, 0);
    const char *tensor = w->tensors ? tensor_loop_argument(w->e, w->repeat, argument) : NULL;
    if (tensor)
        return tensor;
    uint64_t *offset = ARENA_ARRAY(arena, uint64_t, w->repeat.times);
    uint64_t *slot = ARENA_ARRAY(arena, uint64_t, w->repeat.times);
    for (Id t = 0; t < w->repeat.times; t++) {
        offset[t] = address_at(w, call, argument, t)->offset;
        slot[t] = address_at(w, call, argument, t)->slot;
    }
    const bool fixed = is_constant(w, offset), fixed_slot = is_constant(w, slot);
    if (a->kind == AT_NUMBER)
        return fixed
                   ? number_text(w, a->offset)
                   : arena_printf(arena, "row->%s", loop_column(&w->table, offset, false, a->role));
    Numbering n = find_numbering(w, call, argument);
    if (fixed && fixed_slot)
        return argument_text(w, a, n.name);
    for (Id k = 0; k < argument; k++) /* in place */
        if (is_same(w, call, k, argument))
            return loop_argument(w, call, k);
    Place place = {.moves = true};
    const char *at = fixed ? decimal(w, a->offset) : even(w, offset, n, &place);
    const char *in = fixed_slot ? decimal(w, a->slot) : even(w, slot, n, &place);
    if (at && in) {
        place.address = address_text(w, a, at, in);
        place.step = fixed_slot && a->kind == AT_ARENA && !a->micro_stride ? place.step : 0;
        return arena_printf(arena, "AT(%s(%s))",
                            place_name(&w->e->places, place_word(arena, n.name), place),
                            iteration_text(w, n.first, n.by));
    }
    if (!at && fixed_slot && a->kind == AT_ARENA && !a->micro_stride &&
        (at = even_after_first(w, offset, n)) != NULL) {
        place.address = address_text(w, a, at, "");
        return arena_printf(arena, "AT(%s(%s))",
                            place_name(&w->e->places, place_word(arena, n.name), place),
                            iteration_text(w, n.first, n.by));
    }
    const char *column = fixed ? NULL : loop_column(&w->table, offset, true, n.name);
    if (fixed_slot && a->kind == AT_ARENA && !a->micro_stride)
        return arena_printf(arena, "ROW(%s)", column);
    at = fixed ? at : arena_printf(arena, "row->%s", column);
    if (!fixed_slot)
        in = arena_printf(
            arena, "row->%s",
            loop_column(&w->table, slot, false, arena_printf(arena, "%s_slot", n.name)));
    return arena_printf(arena, "PLACE(%s)", address_text(w, a, at, in));
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
                   argument_text(w, &w->e->address.at[call->address + k],
                                 value_name(w, &w->e->address.at[call->address + k])));
    write_call(w, call, decimal(w, i), &argument, indent);
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
        ARRAY_PUSH(arena, &argument, loop_argument(w, call, k));
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

/* Whether most of what moves with the layers goes from the last one to the first. */
static bool goes_down(const Writer *w)
{
    int64_t sum = 0;
    for (Id call = 0; call < w->repeat.period; call++)
        for (Id k = 0; k < w->e->call.at[w->repeat.begin + call].addresses; k++) {
            const Address *a = address_at(w, call, k, 0), *b = address_at(w, call, k, 1);
            if (a->kind != AT_NUMBER && a->value != NONE && a->offset != b->offset)
                sum += find_numbering(w, call, k).by;
        }
    return sum < 0;
}

static void write_loop(Writer *w, Repeat repeat)
{
    Arena *arena = w->e->arena;
    Out *kept = w->o, body = out_new(arena);
    begin_calls(w, repeat.period);
    w->repeat = repeat;
    w->down = false;
    w->down = !w->tensors && goes_down(w);
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
                     .values = value_names(e)};
    e->places.arena = e->arena;
    write_programs(&common, false, &first);
    write_programs(&common, true, o);
}
