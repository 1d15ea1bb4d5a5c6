/* From occurrences to calls: equal clusters share one function, and differ in its arguments. */
#include "codegen/internal.h"

#include <ctype.h>
#include <string.h>

uint64_t key_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

void emission_need(Emission *e, const char *file)
{
    for (size_t i = 0; i < e->file.count; i++)
        if (strcmp(e->file.at[i], file) == 0)
            return;
    ARRAY_PUSH(e->arena, &e->file, file);
}

void emission_address(Emission *e, Address address)
{
    ARRAY_PUSH(e->arena, &e->address, address);
}

static bool is_elementwise(const Emission *e, const Cluster *c)
{
    Id node = e->plan->clusters->node[c->node];
    return e->plan->graph->node.at[node].op->flags & OP_ELEMENTWISE;
}

/* ---- Names and comments of functions -------------------------------------------------------- */

enum {
    NAMED_OPS = 3,
    SMALL = 1 << 14,       /* elements below which the speed of a loop does not matter much */
    MANY_FUNCTIONS = 1000, /* from here on the compiler's time does */
};

/* Of the nodes from the first on. */
static const char *cluster_name(const Emission *e, const Cluster *c, Id first, const char *between)
{
    Out o = out_new(e->arena);
    for (Id k = first; k < c->nodes && k < first + NAMED_OPS; k++)
        out(&o, "%s%s", k > first ? between : "",
            e->plan->graph->node.at[e->plan->clusters->node[c->node + k]].op->name);
    if (c->nodes > first + NAMED_OPS)
        out(&o, "%sand%s%u", between, between, c->nodes - first - NAMED_OPS);
    return o.at;
}

static void write_comment(const Emission *e, const Cluster *c, Out *to)
{
    const Graph *g = e->plan->graph;
    const Clusters *all = e->plan->clusters;
    Out o = out_new(e->arena);
    for (Id k = 0; k < c->nodes; k++)
        out(&o, "%s%s", k ? ", " : "", g->node.at[all->node[c->node + k]].op->name);
    for (Id i = 0; i < c->operands; i++)
        out(&o, "%s%s", i ? ", " : ": ", use_text(g, use_of(all->operand[c->operand + i])));
    for (Id i = 0; i < c->results; i++)
        out(&o, "%s%s", i ? ", " : " -> ", use_text(g, use_of(all->result[c->result + i])));
    out_block(to, "", o.at);
}

/* A comma before the column that would be past 100 ends the line. */
static void write_wrapped(Out *o, const char *head)
{
    size_t column = 0, indent = strcspn(head, "(") + 1;
    while (*head) {
        size_t length = strcspn(head, ",");
        length += head[length] == ',';
        size_t shown = length - (column == indent && *head == ' ');
        if (column > indent && column + length > 99) {
            out(o, "\n%*s", (int)indent, "");
            column = indent;
            shown = length - (*head == ' ');
        }
        out_text(o, head + (length - shown), shown);
        column += shown;
        head += length;
    }
}

/* ---- Sharing -------------------------------------------------------------------------------- */

static void rehash(Emission *e)
{
    size_t slots = e->slots ? e->slots * 2 : 256;
    e->by_hash = ARENA_ARRAY(e->arena, Id, slots);
    memset(e->by_hash, 0xff, slots * sizeof *e->by_hash);
    e->slots = slots;
    for (size_t i = 0; i < e->function.count; i++) {
        size_t at = e->function.at[i].hash % slots;
        while (e->by_hash[at] != NONE)
            at = (at + 1) % slots;
        e->by_hash[at] = (Id)i;
    }
}

static int64_t element_count(const Emission *e, const Cluster *c)
{
    Id node = e->plan->clusters->node[c->node];
    return value_count(&e->plan->graph->value.at[e->plan->graph->node.at[node].value]);
}

static Id add_function(Emission *e, const Cluster *c, bool epilogue, const Out *text, uint64_t hash,
                       size_t slot)
{
    const char *name = arena_printf(e->arena, "%s%s_%zu", epilogue ? "epilogue_" : "",
                                    cluster_name(e, c, epilogue ? 1 : 0, "_"), e->function.count);
    if (strncmp(name, e->api->prefix, strlen(e->api->prefix)) == 0)
        name = name_claim(&e->api->names, name);
    Id id = (Id)e->function.count;
    e->by_hash[slot] = id;
    ARRAY_PUSH(e->arena, &e->function,
               (Function){.name = name,
                          .text = text->at,
                          .hash = hash,
                          .cluster = c,
                          .count = epilogue || is_elementwise(e, c) ? element_count(e, c) : 0,
                          .epilogue = epilogue,
                          .table = epilogue ? NULL : e->table,
                          .list = e->list});
    return id;
}

static Id find_function(Emission *e, const Cluster *c, bool epilogue, const Out *text)
{
    if (2 * e->function.count >= e->slots)
        rehash(e);
    uint64_t hash = key_of(text->at);
    size_t at = hash % e->slots;
    for (; e->by_hash[at] != NONE; at = (at + 1) % e->slots)
        if (e->function.at[e->by_hash[at]].hash == hash &&
            strcmp(e->function.at[e->by_hash[at]].text, text->at) == 0)
            return e->by_hash[at];
    return add_function(e, c, epilogue, text, hash, at);
}

const char *emission_epilogue(Emission *e, const Cluster *c, const Out *text)
{
    if (e->notes)
        return "";
    Id id = find_function(e, c, true, text); /* which may move the table */
    return e->function.at[id].name;
}

static void add_calls(Emission *e, const Program *program)
{
    for (Id i = 0; i < program->count; i++) {
        const Occurrence *o = &program->at[i];
        const Cluster *c = &e->plan->clusters->at[o->cluster];
        if (access_is_done(e->plan, o))
            continue;
        Out text = out_new(e->arena);
        Id address = (Id)e->address.count;
        (is_elementwise(e, c) ? loop_write : kernel_write)(e, o, &text);
        EmitCall call = {.function = find_function(e, c, false, &text),
                         .address = address,
                         .addresses = (Id)e->address.count - address,
                         .occurrence = o,
                         .time = program->begin + i,
                         .before = NONE};
        ARRAY_PUSH(e->arena, &e->call, call);
    }
}

/* The shapes of all calls, so that functions that differ in those alone can be one. */
static void note_shapes(Emission *e)
{
    e->notes = true;
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < e->plan->program[p].count; i++) {
            const Occurrence *o = &e->plan->program[p].at[i];
            Out text = out_new(e->arena);
            if (!access_is_done(e->plan, o) &&
                !is_elementwise(e, &e->plan->clusters->at[o->cluster]))
                kernel_write(e, o, &text);
        }
    e->notes = false;
    e->address.count = e->file.count = 0;
}

/* How many calls of eval are those of the forward program: all of them, or none. */
static Id count_shared(const Emission *e)
{
    const Id from = e->program[PROGRAM_FORWARD].call, to = e->program[PROGRAM_EVAL].call,
             count = e->program[PROGRAM_FORWARD].calls;
    const Program *program = e->plan->program;
    if (e->program[PROGRAM_EVAL].calls < count ||
        program[PROGRAM_FORWARD].times != program[PROGRAM_EVAL].times)
        return 0;
    for (Id i = 0; i < count; i++) {
        const EmitCall *a = &e->call.at[from + i], *b = &e->call.at[to + i];
        if (a->function != b->function || a->addresses != b->addresses || a->before != NONE)
            return 0;
        for (Id k = 0; k < a->addresses; k++) {
            const Address *m = &e->address.at[a->address + k], *n = &e->address.at[b->address + k];
            if (m->kind != n->kind || m->slot != n->slot || m->offset != n->offset ||
                m->micro_stride != n->micro_stride)
                return 0;
        }
    }
    return deaths_are_equal(e, from, to, count) ? count : 0;
}

void calls_make(Emission *e)
{
    for (int p = 0; p < PROGRAMS; p++)
        for (Id i = 0; i < e->plan->program[p].count; i++)
            kernel_stores(e, &e->plan->program[p].at[i]);
    note_shapes(e);
    for (int p = 0; p < PROGRAMS; p++) {
        e->program[p].call = (Id)e->call.count;
        add_calls(e, &e->plan->program[p]);
        e->program[p].calls = (Id)e->call.count - e->program[p].call;
        guests_move(e, e->program[p].call, e->program[p].calls);
    }
    e->program[PROGRAM_EVAL].shared = count_shared(e);
}

void function_write(const Emission *e, const char *type, const char *name, const char *text, Out *o)
{
    size_t head = strcspn(text, "\n");
    write_wrapped(o, arena_printf(e->arena, "%s %s%.*s", type, name, (int)head, text));
    out(o, "%s\n", text + head);
}

/* The types of the parameters alone. */
static const char *parameter_types(Arena *arena, const char *text)
{
    Out o = out_new(arena);
    for (const char *end = text + strcspn(text, "\n"); text < end;) {
        size_t length = strcspn(text, ",)"), name = length;
        while (isalnum((unsigned char)text[name - 1]) || text[name - 1] == '_')
            name--;
        name -= text[name - 1] == ' ';
        out(&o, "%.*s%c", (int)name, text, text[length]);
        text += length + 1;
    }
    return o.at;
}

/* Functions that take the same share a type. */
void functions_declare(const Emission *e, Out *o)
{
    size_t count = e->function.count, types = 0;
    const char **type = ARENA_ARRAY(e->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        type[i] =
            e->function.at[i].epilogue ? NULL : parameter_types(e->arena, e->function.at[i].text);
    NameTable *done = names_new(e->arena);
    for (size_t i = 0; i < count; i++) {
        if (!type[i] || names_find(done, type[i]) != UINT32_MAX)
            continue;
        *names_at(done, type[i]) = 1;
        Items names = {0};
        for (size_t k = i; k < count; k++)
            if (type[k] && strcmp(type[k], type[i]) == 0)
                ARRAY_PUSH(e->arena, &names, e->function.at[k].name);
        if (names.count == 1) {
            write_wrapped(o, arena_printf(e->arena, "static int %s%s;", names.at[0], type[i]));
            out(o, "\n");
            continue;
        }
        write_wrapped(o, arena_printf(e->arena, "typedef int gp_op_%zu%s;", ++types, type[i]));
        out_list(o, arena_printf(e->arena, "\nstatic gp_op_%zu ", types), &names, ";\n", 4);
    }
}

/* Where there are so many functions that compiling all of them for speed would take long. */
static const char many_macros[] =
    "/* There are so many functions that compiling them for speed would take long: loops over few\n"
    " * elements, and those that only call a kernel. */\n"
    "#if defined(__clang__)\n"
    "#define GP_SMALL GP_NOINLINE __attribute__((cold))\n"
    "#define GP_CALLER GP_NOINLINE __attribute__((optnone))\n"
    "#elif defined(__GNUC__)\n"
    "#define GP_SMALL GP_NOINLINE __attribute__((cold))\n"
    "#define GP_CALLER GP_NOINLINE __attribute__((optimize(\"O0\")))\n"
    "#else\n"
    "#define GP_SMALL\n"
    "#define GP_CALLER\n"
    "#endif\n\n";

/* The text of a function, with the table of a loop in place of its own, if that has its numbers. */
static const char *function_text(const Emission *e, const Function *f)
{
    size_t i = 0;
    while (f->table && i < e->list_table.count && !loop_table_has(&e->list_table.at[i], &f->list))
        i++;
    if (!f->table || i == e->list_table.count)
        return f->text;
    const LoopTable *table = &e->list_table.at[i];
    const char *at = strstr(f->text, f->table), *rest = at + strlen(f->table);
    const char *end = strstr(rest, "        in[i] = gp_list(");
    return arena_printf(
        e->arena, "%.*s%.*s        in[i] = gp_list(arena + rows_%u[i].%s, rows_%u[i].%s);\n%s",
        (int)(at - f->text), f->text, (int)(end - rest), rest, table->id, table->column.at[0].name,
        table->id, table->column.at[1].name, strchr(end, '\n') + 1);
}

void functions_write(const Emission *e, Out *o)
{
    bool many = e->function.count >= MANY_FUNCTIONS && !e->dialect->launch;
    if (many)
        out(o, "%s", many_macros);
    for (size_t i = 0; i < e->function.count; i++) {
        const Function *f = &e->function.at[i];
        const char *how = !many || f->count >= SMALL ? "GP_NOINLINE"
                          : f->count                 ? "GP_SMALL"
                                                     : "GP_CALLER";
        const char *type =
            arena_printf(e->arena, "static %s %s", how, f->epilogue ? "void" : "int");
        if (f->epilogue)
            out(o, "/* What becomes of the elements of a product: %s. */\n",
                cluster_name(e, f->cluster, 1, ", "));
        else if (f->count) /* that of a kernel says what it takes */
            write_comment(e, f->cluster, o);
        if (f->count && e->dialect->launch)
            e->dialect->launch(e, f, o);
        else
            function_write(e, type, f->name, function_text(e, f), o);
    }
}

const char *emission_label(const Emission *e, const EmitCall *call)
{
    const Graph *g = e->plan->graph;
    const Cluster *c = &e->plan->clusters->at[call->occurrence->cluster];
    const Node *last = &g->node.at[e->plan->clusters->node[c->node + c->nodes - 1]];
    const char *where = source_where(e->arena, g->source, last->span.line);
    const char *base = strrchr(where, '/');
    return arena_printf(e->arena, "%s %s (%s)", cluster_name(e, c, 0, "+"),
                        g->value.at[last->value].name, base ? base + 1 : where);
}
