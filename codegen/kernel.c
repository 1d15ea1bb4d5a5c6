/* A cluster of one kernel: a function that describes the operands and calls it. */
#include "codegen/internal.h"

#include <string.h>

static bool is_setting(const Arg *arg)
{
    return arg->kind != ARG_TENSOR && arg->kind != ARG_STRING && !(arg->flags & ARG_FRONT);
}

static void write_numbers(Out *o, int count, const int64_t *number)
{
    out(o, "{");
    for (int i = 0; i < count; i++)
        out(o, "%s%lld", i ? ", " : "", (long long)number[i]);
    out(o, count ? "}" : "0}");
}

/* .attr = &(const gp_conv2d_attr){...}, where the kernel has settings. */
static void write_settings(const Graph *g, const Node *node, Out *o)
{
    bool first = true;
    for (int i = 0; i < MAX_ARGS && node->op->args[i].name; i++) {
        const Arg *arg = &node->op->args[i];
        const Attr *attr = &g->attr.at[node->attr + (Id)i];
        if (!is_setting(arg))
            continue;
        if (first)
            out(o, "        .attr = &(const gp_%s_attr){", node->op->name);
        out(o, "%s.%s = ", first ? "" : ", ", arg->name);
        first = false;
        if (arg->kind == ARG_FLOAT)
            out(o, attr->number == attr->number ? "%.17g" : "NAN", attr->number);
        else if (arg->kind == ARG_INTS)
            write_numbers(o, arg->count, attr->list);
        else
            out(o, "%lld", (long long)attr->number);
    }
    if (!first)
        out(o, "},\n");
}

static void write_tensor(Out *o, const char *name, Dtype dtype, const View *view)
{
    out(o, "        {(void *)%s, GP_%s, %d, ", name, c_dtype(dtype), view->rank);
    write_numbers(o, view->rank, view->dim);
    out(o, ", ");
    write_numbers(o, view->rank, view->stride);
    out(o, "},\n");
}

/* Names of parameters: those of the row's arguments, where C and this file leave them free. */
typedef struct {
    Names names;
    Out parameters, tensors, literals;
} Parts;

static const char *operand_name(Parts *p, const Node *node, Id i)
{
    Id operand = 0;
    for (int k = 0; k < MAX_ARGS && node->op->args[k].name; k++) {
        const Arg *arg = &node->op->args[k];
        if (arg->kind != ARG_TENSOR)
            continue;
        if (arg->flags & ARG_VARIADIC)
            return name_claim(&p->names, arena_printf(p->names.arena, "%s%u", arg->name, i));
        if (operand++ == i)
            return name_claim(&p->names, arg->name);
    }
    return name_claim(&p->names, "x");
}

static void write_operand(Emission *e, const Occurrence *o, const Node *node, Id i, Parts *p)
{
    const Graph *g = e->plan->graph;
    Use use = node_use(g, node, i);
    if (use.value == NONE) {
        out(&p->tensors, "        {0},\n");
        return;
    }
    const Value *value = &g->value.at[use.value];
    const char *name = operand_name(p, node, i), *type = c_type((Dtype)value->dtype);
    if (value->kind == VALUE_LITERAL) {
        View view = use_view(g, use);
        memset(view.stride, 0, sizeof view.stride);
        out(&p->literals, "    const %s %s = ", type, name);
        out_real(&p->literals, value->literal);
        out(&p->literals, ";\n");
        write_tensor(&p->tensors, arena_printf(e->arena, "&%s", name), (Dtype)value->dtype, &view);
        return;
    }
    Id buffer = access_buffer(e->plan, o, use.value);
    View view = access_view(e->plan, use, buffer);
    out(&p->parameters, ", const %s *%s", type, name);
    emission_address(e, access_address(e->api, buffer, &view));
    write_tensor(&p->tensors, name, (Dtype)value->dtype, &view);
}

static void write_output(Emission *e, const Occurrence *o, const Node *node, Id i, Parts *p)
{
    Id id = node_value(node, i), buffer = access_buffer(e->plan, o, id);
    const Value *value = &e->plan->graph->value.at[id];
    if (buffer == NONE) { /* nobody reads it */
        View view = value_view(value);
        write_tensor(&p->tensors, "0", (Dtype)value->dtype, &view);
        return;
    }
    View view = access_view(e->plan, use_of(id), buffer);
    const char *name = name_claim(&p->names, i == 0 ? "y" : arena_printf(e->arena, "y_%u", i));
    out(&p->parameters, ", %s *%s", c_type((Dtype)value->dtype), name);
    emission_address(e, access_address(e->api, buffer, &view));
    write_tensor(&p->tensors, name, (Dtype)value->dtype, &view);
}

void kernel_write(Emission *e, const Occurrence *o, Out *text)
{
    const Graph *g = e->plan->graph;
    const Cluster *c = &e->plan->clusters->at[o->cluster];
    const Node *node = &g->node.at[e->plan->clusters->node[c->node]];
    Parts p = {.names = {.arena = e->arena},
               .parameters = out_new(e->arena),
               .tensors = out_new(e->arena),
               .literals = out_new(e->arena)};
    static const char *const ours[] = {"run", "work", "key", "in", "out"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        name_claim(&p.names, ours[i]);
    emission_need(
        e, arena_printf(e->arena, "%s.h", node->op->kernel ? node->op->kernel : node->op->name));
    if (node->uses)
        out(&p.tensors, "    const gp_tensor in[] = {\n");
    for (Id i = 0; i < node->uses; i++)
        write_operand(e, o, node, i, &p);
    out(&p.tensors, "%s    const gp_tensor out[] = {\n", node->uses ? "    };\n" : "");
    for (Id i = 0; i < node->values; i++)
        write_output(e, o, node, i, &p);
    if (o->workspace != NONE) {
        out(&p.parameters, ", void *work");
        emission_address(e, access_address(e->api, o->workspace, NULL));
    }
    if (node->op->flags & OP_RANDOM) {
        out(&p.parameters, ", uint64_t key");
        emission_address(e, (Address){AT_KEY, NONE, key_of(node->stream), 0});
    }
    out(text, "(const gp_run *run%s)\n{\n%s%s    };\n", p.parameters.at, p.literals.at,
        p.tensors.at);
    out(text, "    return gp_%s(&(const gp_call){\n", node->op->name);
    if (node->uses)
        out(text, "        .in = in, .ins = %u, ", node->uses);
    out(text, "%s.out = out, .outs = %u, .run = run,\n", node->uses ? "" : "        ",
        node->values);
    if (o->workspace != NONE)
        out(text, "        .work = work,\n");
    if (node->op->flags & OP_RANDOM)
        out(text, "        .key = key,\n");
    write_settings(g, node, text);
    out(text, "    });\n}\n");
}
