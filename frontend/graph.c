/* The tables of the graph: values, names, and their text form. */
#include "frontend/base/names.h"
#include "frontend/frontend.h"

#include <assert.h>
#include <string.h>

Graph *graph_new(Arena *arena, Diag *diag, const Source *source)
{
    Graph *g = ARENA_NEW(arena, Graph);
    g->arena = arena;
    g->diag = diag;
    g->source = source;
    g->name = "model";
    g->loss_scale = NONE;
    g->ranks.state = g->ranks.last = g->ranks.gather = g->ranks.gathered = NONE;
    g->names = names_new(arena);
    ARRAY_PUSH(arena, &g->scope, (Scope){.path = "", .parent = NONE, .template = NONE});
    graph_program(g, PROGRAM_FORWARD, false);
    return g;
}

void graph_program(Graph *g, ProgramKind program, bool training)
{
    g->program = program;
    g->training = training;
    g->staged.count = 0;
    g->ranks.last = g->ranks.state;
    g->ranks.gathered = g->ranks.gather;
    g->node_names = names_new(g->arena);
}

Id graph_value(Graph *g, ValueKind kind, const char *name, Dtype dtype, int rank,
               const int64_t *dim, Span span)
{
    Value value = {.node = NONE,
                   .previous = NONE,
                   .whole = NONE,
                   .name = name,
                   .span = span,
                   .dtype = (uint8_t)dtype,
                   .rank = (uint8_t)rank,
                   .kind = (uint8_t)kind,
                   .program = (uint8_t)g->program};
    assert(rank <= MAX_RANK);
    memcpy(value.dim, dim, (size_t)rank * sizeof *dim);
    Id id = (Id)g->value.count;
    if (kind != VALUE_RESULT && kind != VALUE_LITERAL && kind != VALUE_OUTPUT)
        *names_at(g->names, name) = id;
    ARRAY_PUSH(g->arena, &g->value, value);
    return id;
}

Id node_updates(const Graph *g, const Node *node, Id output)
{
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        const Id operand = (Id)node->op->updates[i] - 1;
        if (operand == NONE && output-- == 0) /* it is a new value */
            return NONE;
        if (operand < node->uses && node_use(g, node, operand).value != NONE && output-- == 0)
            return operand;
    }
    return NONE;
}

bool node_may_fail(const Node *node)
{
    return node->op->flags & OP_LOOKS_UP && node->phase == PHASE_FORWARD;
}

bool value_is_version(const Graph *g, Id value)
{
    return g->value.at[value].previous != NONE;
}

Id value_first(const Graph *g, Id value)
{
    while (g->value.at[value].previous != NONE)
        value = g->value.at[value].previous;
    return value;
}

bool value_is_persistent(const Graph *g, Id value)
{
    uint8_t kind = g->value.at[value_first(g, value)].kind;
    return kind != VALUE_RESULT && kind != VALUE_LITERAL && kind != VALUE_OUTPUT;
}

Id node_collects(const Graph *g, const Node *node)
{
    Id all = node->values == 1 ? g->value.at[node->value].previous : NONE;
    return all != NONE && g->value.at[all].kind == VALUE_OUTPUT && node->uses == 2 ? all : NONE;
}

bool node_commits(const Graph *g, const Node *node)
{
    for (Id i = 0; i < node->values; i++) {
        Id value = node_value(node, i);
        uint8_t kind = g->value.at[value_first(g, value)].kind;
        if (value_is_version(g, value) && (kind == VALUE_PARAM || kind == VALUE_STATE))
            return true;
    }
    return false;
}

Id graph_find(const Graph *g, const char *name)
{
    return names_find(g->names, name);
}

Use graph_literal(Graph *g, double number, Dtype dtype)
{
    Id id = graph_value(g, VALUE_LITERAL, "", dtype, 0, (int64_t[1]){0}, (Span){0});
    g->value.at[id].literal = number;
    return use_of(id);
}

/* ---- Text, for -d --------------------------------------------------------------------------- */

static void dump_use(const Graph *g, Use use, FILE *to)
{
    if (use.value == NONE) {
        fprintf(to, "none");
        return;
    }
    const Value *value = &g->value.at[use.value];
    if (value->kind == VALUE_LITERAL)
        fprintf(to, "%.9g", value->literal);
    else
        fprintf(to, "%%%u", use.value);
    if (use.view == NONE)
        return;
    const View *view = &g->view.at[use.view];
    fprintf(to, "<%lld", (long long)view->offset);
    for (int i = 0; i < view->rank; i++)
        fprintf(to, "%s%lld:%lld", i ? " " : "; ", (long long)view->dim[i],
                (long long)view->stride[i]);
    fprintf(to, ">");
}

static void dump_attr(const Arg *arg, const Attr *attr, FILE *to)
{
    fprintf(to, " %s=", arg->name);
    if (arg->kind == ARG_INTS)
        for (int i = 0; i < attr->count; i++)
            fprintf(to, "%s%lld", i ? "," : "", (long long)attr->list[i]);
    else
        fprintf(to, "%.9g", attr->number);
}

static void dump_node(const Graph *g, const Node *node, FILE *to)
{
    for (Id i = 0; i < node->values; i++)
        fprintf(to, "%s%%%u", i ? ", " : "  ", node_value(node, i));
    fprintf(to, " = %s(", node->op->name);
    for (Id i = 0; i < node->uses; i++) {
        fprintf(to, "%s", i ? ", " : "");
        dump_use(g, node_use(g, node, i), to);
    }
    fprintf(to, ")");
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++)
        if (node->op->args[i].kind != ARG_TENSOR && !(node->op->args[i].flags & ARG_FRONT))
            dump_attr(&node->op->args[i], &g->attr.at[node->attr + (Id)i], to);
    fprintf(to, " :");
    for (Id i = 0; i < node->values; i++)
        fprintf(to, " %s", use_text(g, use_of(node_value(node, i))));
    fprintf(to, "  # %s\n", node->name);
}

void graph_dump(const Graph *g, FILE *to)
{
    static const char *const kinds[] = {"result", "input",    "param",    "const",
                                        "state",  "gradient", "prepared", "output"};
    fprintf(to, "model %s\n", g->name);
    for (size_t i = 0; i < g->value.count; i++) {
        const Value *value = &g->value.at[i];
        if (value->kind != VALUE_RESULT && value->kind != VALUE_LITERAL)
            fprintf(to, "  %%%zu = %s %s : %s\n", i, kinds[value->kind], value->name,
                    use_text(g, use_of((Id)i)));
    }
    for (size_t i = 0; i < g->node.count; i++)
        dump_node(g, &g->node.at[i], to);
    for (size_t i = 0; i < g->output.count; i++) {
        fprintf(to, "  output %s = ", g->output.at[i].name);
        dump_use(g, g->output.at[i].use, to);
        fprintf(to, "\n");
    }
}
